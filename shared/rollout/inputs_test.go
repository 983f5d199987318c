package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/canonical"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
)

// P7, and P4: what means nothing changes no inputs of a version before.
func TestAnEmptyFieldIsAnInputWhereItHasAMeaning(t *testing.T) {
	sum := func(affinity, overlay string) string {
		g := &v1alpha1.PDGroup{}
		for text, field := range map[*string]**runtime.RawExtension{&affinity: &g.Spec.Affinity, &overlay: &g.Spec.Overlay} {
			if *text != "" {
				*field = &runtime.RawExtension{Raw: []byte(*text)}
			}
		}
		out, err := canonical.Hash(rollout.Inputs(g, nil))
		require.NoError(t, err)
		return out
	}
	seen := map[string]string{}
	for _, c := range [][2]string{
		{"", ""}, {"{}", ""}, {"", "{}"}, {`{"nodeAffinity":{}}`, ""}, {"", `{"spec":{"tolerations":[]}}`}, {"", `{"spec":{"tolerations":null}}`}, {"", `{"spec":{}}`},
	} {
		now := sum(c[0], c[1])
		assert.Empty(t, seen[now], "affinity %q and overlay %q are the same as this", c[0], c[1])
		seen[now] = "affinity " + c[0] + ", overlay " + c[1]
	}
	assert.Equal(t, sum("", `{"spec": {"hostIPC": true, "priority": 1}}`), sum("", `{"spec":{"priority":1,"hostIPC":true}}`))
	said := &v1alpha1.PDGroup{}
	said.Spec.Affinity = &runtime.RawExtension{Raw: []byte(`{"podAntiAffinity":{"x":[{"labelSelector":{}}]}}`)}
	assert.NotContains(t, rollout.Inputs(said, nil), "empties", "what a hash counts anyway")
}
