package controller

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/drain"
	"github.com/tidb-groups/tidb-groups/shared/testkit/golden"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// ownImage is the image that the operator runs from.
const ownImage = "tidb-groups/tiproxygroup-operator:v7"

// sample is the TiProxyGroup that the tests begin with, as the API server would return it.
func sample(changes ...func(*v1alpha1.TiProxyGroup)) *v1alpha1.TiProxyGroup {
	g := &v1alpha1.TiProxyGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tiproxy", Namespace: "shop", UID: "uid", Generation: 1}}
	g.Spec.ComponentSpec = stage.Component()
	g.Spec.Version = "v1.3.0"
	g.Spec.PDGroup.Name, g.Spec.Replicas = "basic-pd", ptr.To[int32](2)
	for _, change := range changes {
		change(g)
	}
	return g
}

func TestRenderedPodIsTheRecordedOne(t *testing.T) {
	g := sample(func(g *v1alpha1.TiProxyGroup) { g.Spec.Config = "[log]\nlevel = \"warn\"\n" })
	template, files, problems := buildTemplate(g, ownImage)
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/basic.json", map[string]any{"template": template, "files": files, "services": renderServices(g), "inputs": collectInputs(g)})
}

func TestPX02AStopWaitsForClientsWithinABound(t *testing.T) {
	shorter := func(g *v1alpha1.TiProxyGroup) {
		g.Spec.Shutdown = &v1alpha1.TiProxyShutdown{DelaySeconds: ptr.To[int64](0), DrainSeconds: ptr.To[int64](600), CloseSeconds: ptr.To[int64](7)}
	}
	grace := func(seconds int64) func(g *v1alpha1.TiProxyGroup) {
		return func(g *v1alpha1.TiProxyGroup) { g.Spec.TerminationGracePeriodSeconds = &seconds }
	}
	for name, c := range map[string]struct {
		image  string
		change func(*v1alpha1.TiProxyGroup)
		hook   *corev1.LifecycleHandler
		grace  int64
		file   string
	}{
		"by default": {ownImage, func(*v1alpha1.TiProxyGroup) {}, &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			"/tidb-groups/drain-clients", "stop", "--metrics=http://localhost:3080/metrics/", "--delay=10s", "--within=60s"}}}, 90, "graceful-close-conn-timeout = 15"},
		"as the spec says": {ownImage, shorter, &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			"/tidb-groups/drain-clients", "stop", "--metrics=http://localhost:3080/metrics/", "--delay=0s", "--within=600s"}}}, 612, "graceful-close-conn-timeout = 7"},
		"within a grace of the user's": {ownImage, grace(60), &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			"/tidb-groups/drain-clients", "stop", "--metrics=http://localhost:3080/metrics/", "--delay=10s", "--within=30s"}}}, 60, "graceful-close-conn-timeout = 15"},
		"within next to none": {ownImage, grace(21), &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			"/tidb-groups/drain-clients", "stop", "--metrics=http://localhost:3080/metrics/", "--delay=1s", "--within=0s"}}}, 21, "graceful-close-conn-timeout = 15"},
		"by an operator that does not know its image": {"", func(*v1alpha1.TiProxyGroup) {}, &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}, 90, "graceful-close-conn-timeout = 15"},
		"by such an operator without a delay":         {"", shorter, nil, 612, "graceful-close-conn-timeout = 7"},
	} {
		t.Run(name, func(t *testing.T) {
			template, files, problems := buildTemplate(sample(c.change), c.image)
			require.Empty(t, problems)
			if c.hook == nil {
				assert.Nil(t, template.Spec.Containers[0].Lifecycle)
			} else {
				assert.Equal(t, c.hook, template.Spec.Containers[0].Lifecycle.PreStop)
			}
			assert.Equal(t, c.grace, *template.Spec.TerminationGracePeriodSeconds)
			assert.Contains(t, files["tiproxy.toml"], c.file)
			assert.Contains(t, files["tiproxy.toml"], "graceful-wait-before-shutdown = 0")
		})
	}
}

// TiProxy shows its metrics at /metrics/, and redirects /metrics to there; programs of the suite
// follow no redirect.
func TestPX02ClientsAreCountedWhereAProxyShowsThem(t *testing.T) {
	mux := http.NewServeMux()
	looks := 0
	mux.HandleFunc("GET /metrics/", func(w http.ResponseWriter, _ *http.Request) {
		looks++
		_, err := fmt.Fprintln(w, "tiproxy_server_connections 0")
		assert.NoError(t, err)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	template, _, problems := buildTemplate(sample(), ownImage)
	require.Empty(t, problems)
	command, err := drain.Parse(template.Spec.Containers[0].Lifecycle.PreStop.Exec.Command[1:], os.Getenv)
	require.NoError(t, err)
	command.Job.Delay, command.Job.Poll = 0, time.Millisecond
	command.Job.Metrics = strings.Replace(command.Job.Metrics, "http://localhost:3080", server.URL, 1)
	require.NoError(t, command.Run(t.Context(), nil))
	assert.Equal(t, 1, looks)
}

func TestPX01TheServiceIsShapedByTheUser(t *testing.T) {
	g := sample(func(g *v1alpha1.TiProxyGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	})
	service := renderServices(g)[0]
	assert.Equal(t, "basic-tiproxy", service.Name)
	assert.Equal(t, corev1.ServiceTypeLoadBalancer, service.Spec.Type)
	assert.EqualValues(t, 3306, service.Spec.Ports[0].Port)
	assert.Equal(t, "basic-tiproxy-peer", renderServices(g)[1].Name)
	assert.Equal(t, corev1.ServiceTypeClusterIP, renderServices(sample())[0].Spec.Type)
}

func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	_, files, problems := buildTemplate(sample(func(g *v1alpha1.TiProxyGroup) { g.Spec.ClusterDomain = "k8s.example.com" }), "")
	require.Empty(t, problems)
	assert.Contains(t, files["tiproxy.toml"], "pd-addrs = 'basic-pd.shop.svc.k8s.example.com:2379'")
}

func TestPreferIPv6ListensEverywhere(t *testing.T) {
	_, files, problems := buildTemplate(sample(func(g *v1alpha1.TiProxyGroup) { g.Spec.PreferIPv6 = true }), "")
	require.Empty(t, problems)
	assert.Contains(t, files["tiproxy.toml"], "addr = '[::]:6000'")
	assert.Contains(t, files["tiproxy.toml"], "addr = '[::]:3080'")
}

func TestKeysThatTheOperatorOwnsAreRefused(t *testing.T) {
	_, _, problems := buildTemplate(sample(func(g *v1alpha1.TiProxyGroup) {
		g.Spec.Config = "workdir = \"/x\"\n[proxy]\naddr = \"y\"\nadvertise-addr = \"a\"\npd-addrs = \"z\"\nport-range = [7000, 7009]\n"
	}), "")
	require.Len(t, problems, 5)
	for n, key := range []string{"workdir", "proxy.addr", "proxy.advertise-addr", "proxy.pd-addrs", "proxy.port-range"} {
		assert.Contains(t, problems[n], key)
	}
	_, _, problems = buildTemplate(sample(func(g *v1alpha1.TiProxyGroup) { g.Spec.Config = "a = " }), "")
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "spec.config")
}

// What a proxy registers in PD is where others ask it, who compare it with its certificate: TiDB, and the
// proxies that read the load of servers from one of them. v1.0 knows no such flag and would not start.
func TestPX04AProxyRegistersAnAddressOfItsCertificate(t *testing.T) {
	for version, want := range map[string]string{
		"v1.3.0":  "--advertise-addr=$(POD_NAME).basic-tiproxy-peer.shop.svc.k8s.example.com",
		"v1.1.0":  "--advertise-addr=$(POD_NAME).basic-tiproxy-peer.shop.svc.k8s.example.com",
		"nightly": "--advertise-addr=$(POD_NAME).basic-tiproxy-peer.shop.svc.k8s.example.com",
		"v1.0.2":  "",
	} {
		template, _, problems := buildTemplate(sample(func(g *v1alpha1.TiProxyGroup) { g.Spec.Version, g.Spec.ClusterDomain = version, "k8s.example.com" }), "")
		require.Empty(t, problems)
		if want == "" {
			assert.NotContains(t, strings.Join(template.Spec.Containers[0].Args, " "), "advertise", version)
			continue
		}
		assert.Contains(t, template.Spec.Containers[0].Args, want, version)
	}
}

func TestPX04AProxySpeaksTLSOnEachSide(t *testing.T) {
	g := sample(func(g *v1alpha1.TiProxyGroup) {
		g.Spec.TLS = &v1alpha1.TiProxyTLS{MySQL: &v1alpha1.MySQLTLS{ClientAuth: v1alpha1.ClientAuthVerify}, Backend: &v1alpha1.BackendTLS{}}
		g.Spec.Config = "[security]\nrequire-backend-tls = true\n"
	})
	template, files, problems := buildTemplate(g, ownImage)
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/tls.json", map[string]any{"template": template, "files": files, "inputs": collectInputs(g)})

	g.Spec.TLS.MySQL.ClientAuth, g.Spec.TLS.Backend = "", nil
	template, files, problems = buildTemplate(g, "")
	require.Empty(t, problems)
	assert.NotContains(t, files["tiproxy.toml"], "tiproxy-server-tls/ca.crt", "no certificate is wanted of clients")
	assert.NotContains(t, files["tiproxy.toml"], "sql-tls")
	assert.Len(t, template.Spec.Volumes, 5, "config, tmp, work, and two certificates")

	g.Spec.Config = "[security.cluster-tls]\nca = '/mine'\n"
	_, _, problems = buildTemplate(g, "")
	assert.Len(t, problems, 1, "it is the operator's to set")
	g.Spec.Config = "[security.sql-tls]\nskip-ca = true\n"
	_, _, problems = buildTemplate(g, "")
	assert.Empty(t, problems, "TLS towards TiDB servers without a Secret")
}
