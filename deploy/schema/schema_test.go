package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/deploy/schema"
)

func TestDeliveredFilesAreFinishedAndSmallEnough(t *testing.T) {
	paths, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, 6)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		kept, err := yaml.YAMLToJSON(text)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(kept), schema.MaxBytes, path)
		again, err := schema.Finish(text)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(again), "run make generate")
	}
}

// crd is a CRD in short: its plural, and the schema of its spec.
func crd(plural, spec string) []byte {
	return []byte("spec:\n  names: {plural: " + plural + "}\n  versions:\n  - schema: {openAPIV3Schema: {properties: {spec: {description: Spec., properties: " + spec + "}}}}\n")
}

func TestOnlyTheUmbrellasEntriesAreTrimmed(t *testing.T) {
	spec := `{version: {description: "Of all. Really."}, tikv: {description: The groups., items: {properties:
		{volumes: {description: "The volumes. More.", items: {description: One., properties: {name: {description: Its name., type: string}}}}}}}}`
	spec = strings.ReplaceAll(spec, "\t", " ")
	for plural, want := range map[string]string{
		"tikvgroups":   `description: Its name.`,
		"tidbclusters": `description: The volumes.`,
	} {
		out, err := schema.Finish(crd(plural, spec))
		require.NoError(t, err)
		assert.Contains(t, string(out), want)
		assert.Contains(t, string(out), "description: Of all. Really.")
		assert.Contains(t, string(out), "description: The groups.")
	}
	out, err := schema.Finish(crd("tidbclusters", spec))
	require.NoError(t, err)
	for _, gone := range []string{"Its name", "One.", "More."} {
		assert.NotContains(t, string(out), gone)
	}
}

func TestAQuantityThatIsAStringIsNothingElse(t *testing.T) {
	out, err := schema.Finish(crd("x", `{storage: {type: string, x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
  cpu: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}`))
	require.NoError(t, err)
	var parsed struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties struct {
							Spec struct{ Properties map[string]map[string]any }
						}
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(out, &parsed))
	properties := parsed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties.Spec.Properties
	assert.Equal(t, map[string]any{"type": "string"}, properties["storage"])
	assert.Contains(t, properties["cpu"], "x-kubernetes-int-or-string")
}

func TestATooLargeFileIsAnError(t *testing.T) {
	_, err := schema.Finish(crd("x", "{a: {description: "+strings.Repeat("x", schema.MaxBytes)+"}}"))
	require.ErrorContains(t, err, "bytes are more than 102400")
}

func TestWhatIsNoCRDIsAnError(t *testing.T) {
	_, err := schema.Finish([]byte("a: [b"))
	require.ErrorContains(t, err, "parse")
	_, err = schema.Finish([]byte("spec: {}"))
	require.ErrorContains(t, err, "no versions")
	require.ErrorContains(t, schema.FinishDir(t.TempDir()), "none in")
}
