package localcluster

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given Options
		env   string
		dir   string
		fails string
	}{
		{name: "nothing given", dir: "/var/lib/tidb-groups-local"},
		{name: "the environment", env: "/srv/local", dir: "/srv/local"},
		{name: "an option wins over the environment", given: Options{Dir: "/srv/mine"}, env: "/srv/local", dir: "/srv/mine"},
		{name: "a directory too long for sockets", given: Options{Dir: "/srv/" + strings.Repeat("x", 60)}, fails: "at most 60"},
		{name: "a directory that would break marks", given: Options{Dir: "/srv/a|b"}, fails: "not allowed"},
		{name: "the root directory", given: Options{Dir: "/"}, fails: "two levels"},
		{name: "a top level directory", given: Options{Dir: "/var"}, fails: "two levels"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(DirEnv, tc.env)
			got, err := tc.given.complete()
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.dir, got.Dir)
		})
	}
}

func TestNodesAreInThreeZones(t *testing.T) {
	assert.Equal(t, []Node{
		{Name: "node-1", Zone: "zone-a", Address: "10.244.0.11"},
		{Name: "node-2", Zone: "zone-b", Address: "10.244.0.12"},
		{Name: "node-3", Zone: "zone-c", Address: "10.244.0.13"},
	}, listNodes())
}

func TestCertificatesVerifyAndAreMadeOnce(t *testing.T) {
	l := layout{root: t.TempDir()}
	now := time.Now()
	require.NoError(t, l.createPKI(now))
	parse := func(name string) *x509.Certificate {
		content, err := os.ReadFile(l.pki(name + ".crt"))
		require.NoError(t, err)
		block, _ := pem.Decode(content)
		require.NotNil(t, block)
		cert, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		return cert
	}
	roots := x509.NewCertPool()
	roots.AddCert(parse("ca"))
	for _, c := range listCertificates() {
		options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: now}
		if c.server {
			options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}
		cert := parse(c.name)
		_, err := cert.Verify(options)
		require.NoError(t, err, c.name)
		for _, h := range c.hosts {
			require.NoError(t, cert.VerifyHostname(h), c.name)
		}
	}
	info, err := os.Stat(l.pki("ca.key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	before := parse("admin")
	require.NoError(t, l.createPKI(now))
	assert.True(t, before.Equal(parse("admin")), "running daemons use it")
}

func TestConfigsStayBelowTheStateDirectory(t *testing.T) {
	l := layout{root: t.TempDir()}
	require.NoError(t, l.createPKI(time.Now()))
	require.NoError(t, l.writeConfigs("docker.io/x/pause:dev", "native"))

	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	require.NoError(t, err)
	assert.Equal(t, "https://10.244.0.1:6443", config.Host)

	toml, err := os.ReadFile(l.config("node-2-containerd.toml"))
	require.NoError(t, err)
	for _, want := range []string{
		`root = "` + l.root + `/nodes/node-2/containerd"`,
		`state = "` + l.root + `/nodes/node-2/run/containerd"`,
		`address = "` + l.root + `/nodes/node-2/run/containerd.sock"`,
		`Root = "` + l.root + `/nodes/node-2/run/runc"`,
		`sandbox_image = "docker.io/x/pause:dev"`,
		`snapshotter = "native"`,
		`restrict_oom_score_adj = true`,
	} {
		assert.Contains(t, string(toml), want)
	}

	content, err := os.ReadFile(l.config("node-3-kubelet.yaml"))
	require.NoError(t, err)
	var kubelet map[string]any
	require.NoError(t, json.Unmarshal(content, &kubelet))
	assert.Equal(t, "/tidb-groups-local/node-3", kubelet["cgroupRoot"])
	assert.Equal(t, "10.244.0.13", kubelet["address"])
	assert.Equal(t, "unix://"+l.root+"/nodes/node-3/run/containerd.sock", kubelet["containerRuntimeEndpoint"])
	for _, key := range []string{"podLogsDir", "volumePluginDir", "resolvConf"} {
		path, ok := kubelet[key].(string)
		require.True(t, ok, key)
		assert.True(t, strings.HasPrefix(path, l.root+"/"), key)
	}

	info, err := os.Stat(filepath.Join(l.config("cni"), "10-pod.conflist"))
	require.NoError(t, err)
	require.NoError(t, l.writeConfigs("docker.io/x/pause:dev", "native"))
	again, err := os.Stat(filepath.Join(l.config("cni"), "10-pod.conflist"))
	require.NoError(t, err)
	assert.Equal(t, info.ModTime(), again.ModTime(), "a file that did not change is not written")
}

func TestAStateDirectoryIsOnlyTakenAndRemovedIfItIsOurs(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(precious, []byte("x"), 0o600))
	l := layout{root: dir}
	require.ErrorContains(t, l.create(), "not empty")
	require.NoError(t, l.remove())
	require.FileExists(t, precious)

	l = layout{root: filepath.Join(dir, "new")}
	require.NoError(t, l.create())
	require.NoError(t, l.create(), "a second time")
	require.NoError(t, writeFile(l.pidFile("node-1/kubelet"), []byte("x"), 0o600))
	require.NoError(t, l.remove())
	require.NoDirExists(t, l.root)
	require.NoError(t, l.remove(), "a second time")
	require.FileExists(t, precious)
}
