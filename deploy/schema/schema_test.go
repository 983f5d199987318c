package schema_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/schema"
)

func TestDeliveredFilesAreFinishedAndSmallEnough(t *testing.T) {
	paths, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, len(v1alpha1.Kinds()))
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

// An API server takes into a new CRD only the functions of CEL that the Kubernetes before it knows, too. 1.30,
// the oldest that is supported, refuses those of addresses, formats and versions, and every CRD with one.
func TestRulesCallNothingThatTheOldestKubernetesRefuses(t *testing.T) {
	newer := regexp.MustCompile(`\b(isIP|ip|isCIDR|cidr|isSemver|semver|format\.\w+|transformList|transformMap|flatten|distinct)\(`)
	paths, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Empty(t, newer.FindAllString(string(text), -1), path)
	}
}

// crd is a CRD in short: its plural, and the schema of its spec.
func crd(plural, spec string) []byte {
	return []byte("spec:\n  names: {plural: " + plural + "}\n  versions:\n  - schema: {openAPIV3Schema: {properties: {spec: {description: Spec., properties: " + spec + "}}}}\n")
}

// U 15: a user who writes a TidbCluster can have every field explained. What Kubernetes
// calls a condition is left to Kubernetes.
func TestEveryFieldOfASpecIsDescribed(t *testing.T) {
	paths, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var crd map[string]any
		require.NoError(t, yaml.Unmarshal(text, &crd))
		versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
		require.NoError(t, err)
		for _, v := range versions {
			version, ok := v.(map[string]any)
			require.True(t, ok)
			spec, found, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
			require.True(t, found && err == nil, path)
			assert.Empty(t, undescribed(spec, "spec"), path)
		}
	}
}

// undescribed returns the fields below a schema that have no description.
func undescribed(of map[string]any, path string) []string {
	var out []string
	fields, _ := of["properties"].(map[string]any)
	for name, f := range fields {
		field, _ := f.(map[string]any)
		if text, _ := field["description"].(string); text == "" {
			out = append(out, path+"."+name)
		}
		out = append(out, undescribed(field, path+"."+name)...)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, is := of[key].(map[string]any); is {
			out = append(out, undescribed(below, path+"[]")...)
		}
	}
	return out
}

func TestAQuantityOfTypeStringAllowsNoOtherType(t *testing.T) {
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

func TestDeliveredQuantitiesHaveExponentsThatGoReads(t *testing.T) {
	paths, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(text), `([eE](\+|-)?[0-9]{1,2})`, path)
		assert.NotContains(t, string(text), `[eE](\+|-)?((`, path+": controller-gen writes another pattern by now")
	}
}

func TestATooLargeFileIsAnError(t *testing.T) {
	_, err := schema.Finish(crd("x", "{a: {description: "+strings.Repeat("x", schema.MaxBytes)+"}}"))
	require.ErrorContains(t, err, "bytes are more than 245760")
}

func TestAFileThatIsNoCRDIsAnError(t *testing.T) {
	_, err := schema.Finish([]byte("a: [b"))
	require.ErrorContains(t, err, "parse")
	_, err = schema.Finish([]byte("spec: {}"))
	require.ErrorContains(t, err, "no versions")
	require.ErrorContains(t, schema.FinishDir(t.TempDir()), "none in")
}
