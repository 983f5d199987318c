package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/golden"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

func sample() *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: "shop", UID: "uid", Generation: 1}}
	g.Spec.ComponentSpec = stage.Component("data")
	g.Spec.PDGroup.Name, g.Spec.Replicas = "basic-pd", ptr.To[int32](3)
	g.Spec.ImagePullPolicy = corev1.PullIfNotPresent
	g.Spec.Config = "log-level = \"info\"\n[raft-engine]\ndir = \"/raft\"\n[log.file]\nfilename = \"/logs/tikv.log\"\n"
	g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"disk": "ssd"}
	return g
}

func TestRenderedPodIsTheRecordedOne(t *testing.T) {
	template, files, problems := buildTemplate(sample(), "tidb-groups/tikvgroup-operator:dev")
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/basic.json", map[string]any{"template": template, "files": files, "services": renderServices(sample())})
}

// F7 of the security review: pods try a name without the cluster's domain against their
// search list first.
func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	g := sample()
	g.Spec.ClusterDomain = "k8s.example.com"
	template, _, problems := buildTemplate(g, "tidb-groups/tikvgroup-operator:dev")
	require.Empty(t, problems)
	main := template.Spec.Containers[0]
	for _, want := range []string{
		"--pd-endpoints=basic-pd.shop.svc.k8s.example.com:2379",
		"--advertise-addr=$(POD_NAME).basic-tikv-peer.shop.svc.k8s.example.com:20160",
		"--advertise-status-addr=$(POD_NAME).basic-tikv-peer.shop.svc.k8s.example.com:20180",
	} {
		assert.Contains(t, main.Args, want)
	}
	assert.Contains(t, main.Lifecycle.PostStart.Exec.Command, "--pd=http://basic-pd.shop.svc.k8s.example.com:2379")
	assert.Contains(t, main.Lifecycle.PreStop.Exec.Command, "--pd=http://basic-pd.shop.svc.k8s.example.com:2379")
	assert.Contains(t, main.Lifecycle.PreStop.Exec.Command, "--address=$(POD_NAME).basic-tikv-peer.shop.svc.k8s.example.com:20160", "as PD lists the store")
}

// U 15: nothing listens at IPv4 addresses only, and nothing else is different.
func TestPreferIPv6ListensEverywhere(t *testing.T) {
	g := sample()
	before, _, _ := buildTemplate(g, "")
	g.Spec.PreferIPv6 = true
	template, _, problems := buildTemplate(g, "")
	require.Empty(t, problems)
	args := template.Spec.Containers[0].Args
	assert.Subset(t, args, []string{"--addr=[::]:20160", "--status-addr=[::]:20180"})
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "[::]", "0.0.0.0")
	}
	assert.Equal(t, before, template)
}

func TestConfigurationOfTheUserIsCheckedAndKept(t *testing.T) {
	for name, c := range map[string]struct{ config, problem string }{
		"nothing":                       {"", ""},
		"keys of the user's own":        {"[rocksdb]\nwal-dir = \"/wal\"\n[raftstore]\nraftdb-path = \"/r\"\n[server]\ngrpc-concurrency = 8", ""},
		"no TOML":                       {"x = [", "spec.config: not valid TOML at line 1"},
		"the listening address":         {"[server]\naddr = \"0.0.0.0:1\"", `"server.addr"`},
		"the advertised address":        {"server.advertise-addr = \"x:1\"", `"server.advertise-addr"`},
		"the status address":            {"server.status-addr = \"x:1\"", `"server.status-addr"`},
		"the advertised status address": {"server.advertise-status-addr = \"x:1\"", `"server.advertise-status-addr"`},
		"labels":                        {"[server.labels]\nzone = \"z\"", `"server.labels"`},
		"the data directory":            {"storage.data-dir = \"/x\"", `"storage.data-dir"`},
		"the endpoints of PD":           {"[pd]\nendpoints = [\"x:1\"]", `"pd.endpoints"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			g.Spec.Config = c.config
			_, files, problems := buildTemplate(g, "")
			if c.problem == "" {
				require.Empty(t, problems)
				assert.Contains(t, files, "tikv.toml")
				return
			}
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], c.problem)
			assert.Contains(t, problems[0], "spec.config")
		})
	}
}

func TestStoreLabelsThatPDWouldRefuseAreRefused(t *testing.T) {
	g := sample()
	g.Spec.StoreLabels["zone"] = "mine"
	_, _, problems := buildTemplate(g, "")
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "spec.storeLabels[zone]")
}

func TestOnlyWhatMembersAreMadeOfIsInput(t *testing.T) {
	text := func(change func(*v1alpha1.TiKVGroup)) string {
		g := sample()
		change(g)
		raw, err := json.Marshal(collectInputs(g))
		require.NoError(t, err)
		return string(raw)
	}
	same := text(func(*v1alpha1.TiKVGroup) {})
	assert.Equal(t, same, text(func(g *v1alpha1.TiKVGroup) { g.Spec.StoreLabels = nil }), "store labels change in place")
	assert.Equal(t, same, text(func(g *v1alpha1.TiKVGroup) { g.Spec.Replicas = ptr.To[int32](9) }))
	assert.Equal(t, same, text(func(g *v1alpha1.TiKVGroup) { g.Spec.Paused = true }))
	assert.NotEqual(t, same, text(func(g *v1alpha1.TiKVGroup) { g.Spec.Config = "" }))
	assert.NotEqual(t, same, text(func(g *v1alpha1.TiKVGroup) { g.Spec.Version = "v9" }))
}

func TestSEC01AStoreSpeaksTLS(t *testing.T) {
	g := sample()
	g.Spec.TLS = &v1alpha1.TLS{SecretName: "mine"}
	template, files, problems := buildTemplate(g, "tidb-groups/tikvgroup-operator:dev")
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/tls.json", map[string]any{"template": template, "files": files, "inputs": collectInputs(g)})

	g.Spec.Config = "[security]\nca-path = '/mine'"
	_, _, problems = buildTemplate(g, "")
	assert.Len(t, problems, 1, "it is the operator's to set")
	g.Spec.TLS = nil
	_, _, problems = buildTemplate(g, "")
	assert.Empty(t, problems, "without spec.tls it is not")
}

func TestSEC01AStoreAcceptsOnlyAllowedNames(t *testing.T) {
	g := sample()
	g.Spec.Config, g.Spec.TLS = "[security]\ncert-allowed-cn = ['mine']", &v1alpha1.TLS{}
	_, _, problems := buildTemplate(g, "")
	assert.Empty(t, problems, "without allowedCommonNames it is a user's")
	g.Spec.TLS.AllowedCommonNames = []string{"a", "b"}
	_, _, problems = buildTemplate(g, "")
	assert.Len(t, problems, 1, "it is the operator's to set")
	g.Spec.Config = ""
	_, files, _ := buildTemplate(g, "")
	assert.Contains(t, files[configFile], "cert-allowed-cn = ['a', 'b']")
}
