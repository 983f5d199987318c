package bench

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

func TestAnAdapterTakesPathsFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("OTHER", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "crd.yaml"), nil, 0o600))
	file := filepath.Join(dir, "a.yaml")
	const text = `
name: other
apply: ["{env OTHER}/crd.yaml"]
processes: [{name: p, command: ["{env OTHER}/run", "{kubeconfig}"], env: {HOME: "{env OTHER}"}}]
cluster: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{name}', namespace: '{namespace}'}}"
ready: {pods: 1}
`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	a, err := ReadAdapter(file)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "crd.yaml")}, a.Apply)
	assert.Equal(t, []string{filepath.Join(dir, "run"), "{kubeconfig}"}, a.Processes[0].Command)
	assert.Equal(t, dir, a.Processes[0].Env["HOME"])

	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "OTHER", "NOT_SET_HERE")), 0o600))
	_, err = ReadAdapter(file)
	require.ErrorContains(t, err, "apply[0] has {env NOT_SET_HERE}, and the environment has no NOT_SET_HERE")
	require.ErrorContains(t, err, "processes[0].command[0] has {env NOT_SET_HERE}")
	require.ErrorContains(t, err, "processes[0].env.HOME has {env NOT_SET_HERE}")
}

func TestTheAdapterOfTiDBOperatorV1IsComplete(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("V1", dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "manifests"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifests", "crd.yaml"), nil, 0o600))
	_, err := ReadAdapter("adapters/tidb-operator-v1.yaml")
	require.NoError(t, err)
}

func TestMembersAreFoundByTheirLabels(t *testing.T) {
	m, err := AdapterMember{Component: "tikv", Selector: "component=tikv,!closed", Service: "{label cluster}-pd-{label zone}"}.membership()
	require.NoError(t, err)
	pod := map[string]string{"component": "tikv", "cluster": "basic", "zone": "a"}
	assert.True(t, m.Selector.Matches(labels.Set(pod)))
	assert.Equal(t, "basic-pd-a", m.Service(pod))
	pod["closed"] = ""
	assert.False(t, m.Selector.Matches(labels.Set(pod)))
	assert.Equal(t, "tikv", m.Component)
}

func TestTheNameServerAnswers(t *testing.T) {
	s, err := serveNames(t.Context(), 0, func(name string) (string, bool) {
		ip, found := map[string]string{"basic-pd.db.": "127.1.2.3", "no-address.": "none"}[name]
		return ip, found
	})
	require.NoError(t, err)
	t.Cleanup(s.stop)
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.connection.LocalAddr().String())
	}}
	got, err := resolver.LookupHost(t.Context(), "basic-pd.db.")
	require.NoError(t, err)
	assert.Equal(t, []string{"127.1.2.3"}, got, "and no IPv6 address")
	for _, name := range []string{"basic-tidb.db.", "no-address."} {
		_, err = resolver.LookupHost(t.Context(), name)
		var none *net.DNSError
		require.ErrorAs(t, err, &none)
		assert.True(t, none.IsNotFound, name)
	}

	_, err = s.answer([]byte("no question"))
	require.Error(t, err)
}

// Only the process itself is told where to ask for names.
func TestAProcessUsesTheConfiguredNameServer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a process another resolv.conf")
	}
	before, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	s, err := serveNames(t.Context(), 0, nil)
	require.NoError(t, err)
	t.Cleanup(s.stop)
	file, err := s.file(t.TempDir())
	require.NoError(t, err)
	program := withNames(file, []string{"sh", "-c", `cat /etc/resolv.conf && echo "$0"`, "an argument"})
	said, err := exec.CommandContext(t.Context(), program[0], program[1:]...).CombinedOutput() //nolint:gosec // the test says which
	require.NoError(t, err, "%s", said)
	assert.Regexp(t, `^nameserver 127\.0\.0\.\d+\nan argument\n$`, string(said))
	after, err := os.ReadFile("/etc/resolv.conf")
	require.NoError(t, err)
	assert.Equal(t, before, after)
}
