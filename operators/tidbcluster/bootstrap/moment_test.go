package bootstrap

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// What was committed in the last milliseconds before the moment is restored, too.
func TestBR04TheMomentOfABootstrapKeepsItsMilliseconds(t *testing.T) {
	for _, text := range []string{`"2026-01-02T03:04:05.678Z"`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.678+02:00"`} {
		var from v1alpha1.BootstrapFrom
		require.NoError(t, json.Unmarshal([]byte(`{"pointInTime":`+text+`}`), &from))
		c := &v1alpha1.TidbCluster{Spec: v1alpha1.TidbClusterSpec{BootstrapFrom: from.DeepCopy()}}
		out, err := json.Marshal(renderRestore(c, "basic-tidb").DeepCopy())
		require.NoError(t, err)
		assert.Contains(t, string(out), `"pointInTime":`+text)
	}
}
