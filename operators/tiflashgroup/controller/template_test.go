package controller

import (
	"encoding/json"
	"fmt"
	"net"
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
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

func sample() *v1alpha1.TiFlashGroup {
	g := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tiflash", Namespace: "shop", UID: "uid", Generation: 1}}
	g.Spec.ComponentSpec = stage.Component("data", "more")
	g.Spec.PDGroup.Name, g.Spec.Replicas = "basic-pd", ptr.To[int32](2)
	g.Spec.ImagePullPolicy = corev1.PullIfNotPresent
	g.Spec.Config = "[logger]\nlevel = \"debug\"\n[storage.main]\ncapacity = [10737418240, 0]\n[profiles.default]\nmax_memory_usage = 0\n"
	g.Spec.ProxyConfig = "log-level = \"info\"\n[raftstore]\napply-pool-size = 4\n"
	g.Spec.LogTailer = &v1alpha1.Sidecar{Image: "busybox:1.37.0"}
	return g
}

func TestRenderedPodIsTheRecordedOne(t *testing.T) {
	template, files, problems := buildTemplate(sample())
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/basic.json", map[string]any{"template": template, "files": files, "services": renderServices(sample())})
}

// FL-08: no init container rewrites a file: what differs between members is on
// the command line.
func TestFL08MembersShareTheirFiles(t *testing.T) {
	template, files, problems := buildTemplate(sample())
	require.Empty(t, problems)
	assert.Empty(t, template.Spec.InitContainers)
	main := template.Spec.Containers[0]
	assert.Equal(t, []string{
		"server", "--config-file=/etc/tiflash/tiflash.toml", "--",
		"--flash.proxy.engine-addr=$(POD_NAME).basic-tiflash-peer.shop.svc:3930",
		"--flash.proxy.advertise-addr=$(POD_NAME).basic-tiflash-peer.shop.svc:20170",
		"--flash.proxy.advertise-status-addr=$(POD_NAME).basic-tiflash-peer.shop.svc:20292",
	}, main.Args)
	for name, text := range files {
		assert.NotContains(t, text, "POD_NAME", name)
	}
	for _, port := range main.Ports {
		assert.LessOrEqual(t, len(port.Name), 15)
	}
}

// TiFlash ends if it cannot listen at flash.service_addr: a restarted pod has another address than the
// cluster's DNS says for up to half a minute, so that it is not to look its own name up.
func TestFL08AMemberListensWithoutLookingUpItsName(t *testing.T) {
	for _, version6 := range []bool{false, true} {
		g := sample()
		g.Spec.PreferIPv6 = version6
		template, files, problems := buildTemplate(g)
		require.Empty(t, problems)
		flash, err := tomlconfig.Parse("tiflash.toml", files[configFile])
		require.NoError(t, err)
		listens, _, err := net.SplitHostPort(fmt.Sprint(flash.Leaves()["flash.service_addr"]))
		require.NoError(t, err)
		assert.True(t, net.ParseIP(listens).IsUnspecified(), listens)
		args := strings.Join(template.Spec.Containers[0].Args, "\n")
		assert.NotContains(t, args, "--flash.service_addr")
		assert.Contains(t, args, "--flash.proxy.engine-addr=$(POD_NAME).basic-tiflash-peer.shop.svc:3930", "what the others are told")
	}
}

// F7 of the security review: pods try a name without the cluster's domain against their
// search list first.
func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	g := sample()
	g.Spec.ClusterDomain = "k8s.example.com"
	template, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	assert.Equal(t, []string{
		"--flash.proxy.engine-addr=$(POD_NAME).basic-tiflash-peer.shop.svc.k8s.example.com:3930",
		"--flash.proxy.advertise-addr=$(POD_NAME).basic-tiflash-peer.shop.svc.k8s.example.com:20170",
		"--flash.proxy.advertise-status-addr=$(POD_NAME).basic-tiflash-peer.shop.svc.k8s.example.com:20292",
	}, template.Spec.Containers[0].Args[3:])
	assert.Contains(t, files["tiflash.toml"], "'basic-pd.shop.svc.k8s.example.com:2379'")
}

// U 15: nothing listens at IPv4 addresses only, and nothing else is different.
func TestPreferIPv6ListensEverywhere(t *testing.T) {
	g := sample()
	before, filesBefore, _ := buildTemplate(g)
	g.Spec.PreferIPv6 = true
	template, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	assert.Equal(t, before.Spec.Containers[0].Args, template.Spec.Containers[0].Args)
	tree, err := tomlconfig.Parse("tiflash.toml", files["tiflash.toml"])
	require.NoError(t, err)
	assert.Equal(t, "::", tree["listen_host"], "TiFlash adds the brackets itself")
	delete(tree, "listen_host")
	rest, err := tomlconfig.Render(tree)
	require.NoError(t, err)
	assert.Contains(t, rest, "'[::]:20170'")
	assert.Contains(t, rest, "'[::]:20292'")
	assert.Equal(t, filesBefore["tiflash.toml"], strings.ReplaceAll(rest, "[::]", "0.0.0.0"))
	assert.Equal(t, filesBefore["proxy.toml"], files["proxy.toml"])

	g.Spec.Config = "listen_host = \"fd00::7\"\n"
	_, files, problems = buildTemplate(g)
	require.Empty(t, problems)
	assert.Contains(t, files["tiflash.toml"], "listen_host = 'fd00::7'", "the user's own word")
}

func TestFL02EveryDataVolumeHoldsData(t *testing.T) {
	g := sample()
	g.Spec.Volumes = append(g.Spec.Volumes,
		v1alpha1.Volume{Name: "scratch", Mounts: []v1alpha1.VolumeMount{{MountPath: "/scratch"}}},
		v1alpha1.Volume{Name: "third"})
	g.Spec.Config = strings.Replace(g.Spec.Config, "[10737418240, 0]", "[10737418240, 0, 0]", 1)
	template, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	tree, err := tomlconfig.Parse("tiflash.toml", files["tiflash.toml"])
	require.NoError(t, err)
	main, ok := tree["storage"].(map[string]any)["main"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, []any{"/data0/db", "/data1/db", "/data2/db"}, main["dir"])
	assert.NotNil(t, main["capacity"], "what the user says beside it stays")
	mounts := map[string]string{}
	for _, m := range template.Spec.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	assert.Equal(t, "/data0", mounts["data"])
	assert.Equal(t, "/data1", mounts["more"])
	assert.Equal(t, "/scratch", mounts["scratch"])
	assert.Equal(t, "/data2", mounts["third"])
}

func TestFL03LogsArePrintedBySidecars(t *testing.T) {
	commands := func(g *v1alpha1.TiFlashGroup) map[string][]string {
		template, _, problems := buildTemplate(g)
		require.Empty(t, problems)
		out := map[string][]string{}
		for _, c := range template.Spec.Containers[1:] {
			assert.Equal(t, []string{"sh", "-c"}, c.Command[:2], "a bare tail would ignore SIGTERM")
			out[c.Name] = c.Command[4:]
			require.Len(t, c.VolumeMounts, 1)
			assert.True(t, c.VolumeMounts[0].ReadOnly)
		}
		return out
	}
	g := sample()
	assert.Equal(t, map[string][]string{
		"serverlog": {"/data0/logs/server.log"},
		"errorlog":  {"/data0/logs/error.log"},
	}, commands(g))
	g.Spec.Config = "[logger]\nlog = \"/data1/mine.log\"\n"
	assert.Equal(t, []string{"/data1/mine.log"}, commands(g)["serverlog"])
	g.Spec.LogTailer.Disabled = true
	g.Spec.Config = "[logger]\nlog = \"/elsewhere/mine.log\"\n"
	assert.Empty(t, commands(g))
}

// FL-03: both files are the user's, but for the keys that the operator owns.
func TestFL03OwnedKeysAreRefused(t *testing.T) {
	for _, key := range ownedKeys() {
		g := sample()
		g.Spec.Config = key + " = \"x\""
		_, _, problems := buildTemplate(g)
		require.Len(t, problems, 1, key)
		assert.Contains(t, problems[0], `spec.config: key "`+key+`" is set by the operator`)
	}
	for _, key := range ownedProxyKeys() {
		g := sample()
		g.Spec.ProxyConfig = key + " = \"x\""
		_, _, problems := buildTemplate(g)
		require.Len(t, problems, 1, key)
		assert.Contains(t, problems[0], `spec.proxyConfig: key "`+key+`" is set by the operator`)
	}
}

func TestMistakesInTheFilesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.TiFlashGroup)
		part   string
	}{
		"tiflash.toml is no TOML":            {func(g *v1alpha1.TiFlashGroup) { g.Spec.Config = "x = [" }, "spec.config: not valid TOML at line 1"},
		"proxy.toml is no TOML":              {func(g *v1alpha1.TiFlashGroup) { g.Spec.ProxyConfig = "x = [" }, "spec.proxyConfig: not valid TOML at line 1"},
		"a log that cannot be read":          {func(g *v1alpha1.TiFlashGroup) { g.Spec.Config = "logger.errorlog = \"/data10/x.log\"" }, `spec.config: logger.errorlog is "/data10/x.log"`},
		"a log that is no path":              {func(g *v1alpha1.TiFlashGroup) { g.Spec.Config = "logger.log = 3" }, "spec.config: logger.log is 3"},
		"fewer capacities than data volumes": {func(g *v1alpha1.TiFlashGroup) { g.Spec.Config = "storage.main.capacity = [7]" }, "spec.config: storage.main.capacity has 1 numbers, but there are 2 directories of storage.main.dir, one for each data volume (/data0, /data1)"},
		"a data volume added, but no capacity of it": {func(g *v1alpha1.TiFlashGroup) {
			g.Spec.Volumes = append(g.Spec.Volumes, v1alpha1.Volume{Name: "third"})
		}, "storage.main.capacity has 2 numbers"},
		"more capacities than directories": {func(g *v1alpha1.TiFlashGroup) {
			g.Spec.Config = "[storage.latest]\ndir = ['/data1/new']\ncapacity = [7, 7]"
		}, "spec.config: storage.latest.capacity has 2 numbers, but storage.latest.dir has 1 directories"},
		"a label that PD would refuse": {func(g *v1alpha1.TiFlashGroup) {
			g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"rack": "a b"}
		}, "spec.storeLabels[rack]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			c.change(g)
			_, _, problems := buildTemplate(g)
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], c.part)
		})
	}
}

// TiFlash ends at its start if a list of capacities is neither empty nor as long as that of its directories. It
// ignores one of storage.latest that has no directories, and one that is no list of whole numbers.
func TestFL02CapacitiesThatTiFlashTakesAreAccepted(t *testing.T) {
	for _, config := range []string{
		"storage.main.capacity = []", "storage.main.capacity = [7, 7]", "storage.main.capacity = 7", "storage.main.capacity = ['7']",
		"storage.latest.capacity = [7]", "storage.latest = {dir = [], capacity = [7]}", "storage.latest = {dir = ['/data1/new'], capacity = [7]}",
		"storage.latest = {dir = ['/data1/new']}",
	} {
		g := sample()
		g.Spec.Config = config
		_, _, problems := buildTemplate(g)
		assert.Empty(t, problems, config)
	}
}

func TestOnlyWhatMembersAreMadeOfIsInput(t *testing.T) {
	text := func(change func(*v1alpha1.TiFlashGroup)) string {
		g := sample()
		change(g)
		raw, err := json.Marshal(collectInputs(g))
		require.NoError(t, err)
		return string(raw)
	}
	same := text(func(*v1alpha1.TiFlashGroup) {})
	assert.Equal(t, same, text(func(g *v1alpha1.TiFlashGroup) { g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"a": "b"} }))
	assert.NotEqual(t, same, text(func(g *v1alpha1.TiFlashGroup) { g.Spec.ProxyConfig = "" }))
	assert.NotEqual(t, same, text(func(g *v1alpha1.TiFlashGroup) { g.Spec.LogTailer.Disabled = true }))
}

func TestSEC01TiFlashSpeaksTLS(t *testing.T) {
	g := sample()
	g.Spec.TLS = &v1alpha1.TLS{}
	template, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/tls.json", map[string]any{"template": template, "files": files, "inputs": collectInputs(g)})

	g.Spec.Config, g.Spec.ProxyConfig = g.Spec.Config+"[security]\nca_path = '/mine'\n", "[security]\nca-path = '/mine'"
	_, _, problems = buildTemplate(g)
	assert.Len(t, problems, 2, "they are the operator's to set")
	g.Spec.TLS = nil
	_, _, problems = buildTemplate(g)
	assert.Empty(t, problems, "without spec.tls they are not")
}

func TestSEC01TiFlashAcceptsOnlyAllowedNames(t *testing.T) {
	g := sample()
	g.Spec.TLS = &v1alpha1.TLS{AllowedCommonNames: []string{"a", "b"}}
	_, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	assert.Contains(t, files[configFile], "cert_allowed_cn = ['a', 'b']")
	assert.Contains(t, files[proxyFile], "cert-allowed-cn = ['a', 'b']")
}

// FL-08: from v8.5.4 on, TiFlash lets queries run for 600 s before it closes its files, if it is
// not told otherwise: it was killed before.
func TestTiFlashHasTimeToCloseItsFilesAfterItsQueries(t *testing.T) {
	const key = "flash.graceful_wait_shutdown_timeout"
	for _, c := range []struct {
		grace  *int64
		config string
		wanted any
	}{
		{nil, "", int64(graceSeconds / 2)},
		{ptr.To[int64](1200), "", int64(600)},
		{ptr.To[int64](0), "", int64(0)},
		{nil, "[flash]\ngraceful_wait_shutdown_timeout = 5\n", int64(5)},
	} {
		g := sample()
		g.Spec.Config, g.Spec.TerminationGracePeriodSeconds = c.config, c.grace
		_, files, problems := buildTemplate(g)
		require.Empty(t, problems)
		tree, err := tomlconfig.Parse("file", files[configFile])
		require.NoError(t, err)
		assert.Equal(t, c.wanted, tree.Leaves()[key])
	}
}
