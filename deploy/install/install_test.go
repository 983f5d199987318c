package install_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/install"
)

func TestEveryOverlayIsRenderedWithTheImagesOfTheVersion(t *testing.T) {
	names, err := install.Overlays("..")
	require.NoError(t, err)
	// What sets of operators share has none; each set is an overlay of its own below.
	operators := map[string]int{"default": len(v1alpha1.Operators()), "minimal": 3, "namespaces": len(v1alpha1.Operators()), "one-process": 1, "shards": 0}
	require.Len(t, names, len(operators))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			text, err := install.Render("..", name, "v1.2.3-rc.1")
			require.NoError(t, err)
			images := regexp.MustCompile(`(?m)^ +image: tidb-groups/.*$`).FindAllString(string(text), -1)
			assert.Len(t, images, operators[name])
			for _, image := range images {
				assert.Regexp(t, `^ +image: tidb-groups/[a-z]+-operator:v1\.2\.3-rc\.1$`, image)
			}
		})
	}
}

func TestAMissingOverlayIsNamed(t *testing.T) {
	_, err := install.Render("..", "everything", "v1.2.3")
	require.ErrorContains(t, err, "render overlay everything")
}
