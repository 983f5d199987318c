package bench

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry is a line of an audit log: who wrote what, and the version that it left.
func entry(t *testing.T, agent, verb, subresource, version string, status map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"verb": verb, "userAgent": agent, "requestURI": "/apis/x", "responseStatus": map[string]any{"code": 200},
		"objectRef": map[string]any{"resource": "pdgroups", "subresource": subresource},
		"responseObject": map[string]any{
			"kind": "PDGroup", "metadata": map[string]any{"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": version}, "status": status,
		},
	})
	require.NoError(t, err)
	return string(text) + "\n"
}

func TestAChangeIsNamedByItsWriterAndItsFields(t *testing.T) {
	condition := func(kind, is, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": is, "reason": reason, "message": message}
	}
	first := map[string]any{
		"conditions": []any{condition("Ready", "False", "A", "a"), condition("UpToDate", "False", "A", "a"), condition("Stalled", "True", "A", "a")},
		"members":    []any{map[string]any{"name": "a-0", "healthy": true}},
	}
	second := map[string]any{
		"conditions": []any{condition("Ready", "True", "B", "b"), condition("UpToDate", "False", "B", "b"), condition("Joined", "True", "A", "a")},
		"members":    []any{map[string]any{"name": "a-0", "healthy": false}},
		"leader":     "a-0",
	}
	const pd, user = "tidb-groups/pdgroup", "kubectl/v1.35"
	var c Case
	require.NoError(t, c.LogChanges(t.TempDir()))
	write := func(lines ...string) {
		file, err := os.OpenFile(c.changes.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		for _, line := range lines {
			_, err = file.WriteString(line)
			require.NoError(t, err)
		}
		require.NoError(t, file.Close())
	}
	refused := `{"verb":"patch","userAgent":"` + pd + `","objectRef":{"resource":"pdgroups"},"responseStatus":{"code":409}}` + "\n"
	tried := `{"verb":"create","userAgent":"` + pd + `","requestURI":"/api?dryRun=All","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}` + "\n"
	// The second and third answer were written down in the wrong order.
	write(entry(t, user, "create", "", "1", first), entry(t, pd, "patch", "status", "10", first), entry(t, pd, "patch", "status", "9", second), refused, tried, `{"verb":"pat`)

	found, err := c.changes.next()
	require.NoError(t, err)
	both := "Joined.status, Ready.status, Stalled.status, UpToDate.reason, status.leader, status.members[].healthy"
	assert.Equal(t, map[Change]int{{"kubectl", "create", "PDGroup", ""}: 1, {"pdgroup", "patch status", "PDGroup", both}: 2}, found)

	write(`ch","objectRef":null}`+"\n", entry(t, pd, "patch", "", "11", first))
	found, err = c.changes.next()
	require.NoError(t, err)
	assert.Equal(t, map[Change]int{{"pdgroup", "patch", "PDGroup", ""}: 1}, found, "nothing is counted twice, and the versions before are known")
	var none *changes
	found, err = none.next()
	require.NoError(t, err)
	assert.Empty(t, found)
}
