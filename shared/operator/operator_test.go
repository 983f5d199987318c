package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/metrics"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const (
	timeout = time.Minute
	tick    = 20 * time.Millisecond
)

// What TestMain hands to the tests.
var (
	api    client.Client
	access *rest.Config
	logs   = &logBuffer{}
)

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) after(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text.Bytes()[n:])
}

func TestMain(m *testing.M) {
	// At once: controller-runtime drops what is logged from half a minute after the start on if no
	// logger is set by then, and a control plane may take as long on a busy machine.
	ctrl.SetLogger(zap.New(zap.WriteTo(logs)))
	os.Exit(controlplane.Main(m, controlplane.Options{CRDPaths: []string{"../../deploy/crds"}}, func(cp *controlplane.ControlPlane) {
		access = cp.Config
		scheme, err := NewScheme()
		if err == nil {
			api, err = client.New(cp.Config, client.Options{Scheme: scheme})
		}
		if err != nil {
			panic(err)
		}
	}))
}

// toy is a reconciler of PDGroups that says that they are Ready, and panics
// before one that is called "panics".
type toy struct {
	Env
	mu   sync.Mutex
	seen map[types.NamespacedName]int
}

func (r *toy) count(key types.NamespacedName) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[key]
}

func (r *toy) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	r.seen[request.NamespacedName]++
	r.mu.Unlock()
	if request.Name == "panics" {
		panic("a bug")
	}
	g := &v1alpha1.PDGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	set := conditions.New(g.Status.Conditions, g.Generation, r.Now())
	set.Finish(conditions.Verdict{Serving: true, Summary: "it serves", Outcome: r.Outcomes.Count("plan", step.Done())})
	status := g.Status
	status.Conditions = set.List()
	_, err := r.Status.Write(ctx, g, &g.Status, &status, set.Transitions())
	return ctrl.Result{}, err
}

func (r *toy) definition(name string) Definition {
	return Definition{
		Name: name, Kind: v1alpha1.KindPDGroup,
		List: func() client.ObjectList { return &v1alpha1.PDGroupList{} },
		Dialer: func(string, string, pdclient.TLS, prometheus.Registerer) (pd.Dialer, error) {
			return func(types.NamespacedName) (pd.Client, error) { return nil, io.EOF }, nil
		},
		Setup: func(_ context.Context, env Env) error {
			r.Env, r.seen = env, map[types.NamespacedName]int{}
			return ctrl.NewControllerManagedBy(env.Manager).Named(name).For(&v1alpha1.PDGroup{}).WithOptions(env.Controller).Complete(r)
		},
	}
}

// run runs a toy through Run in a namespace until the returned function is
// called.
func run(t *testing.T, namespace, name string, changes ...func(*Flags)) (*toy, func()) {
	t.Helper()
	flags, err := Parse(name, []string{"--namespaces=" + namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	require.NoError(t, err)
	for _, change := range changes {
		change(&flags)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r := &toy{}
	go func() { done <- Run(ctx, access, NewProgram(r.definition(name)), flags) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			assert.NoError(t, <-done)
		})
	}
	t.Cleanup(stop)
	return r, stop
}

func create(t *testing.T, namespace, name string) {
	t.Helper()
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	g.Spec.Version = "v8.5.7"
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, api.Create(t.Context(), g))
}

func isReady(t *testing.T, namespace, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var g v1alpha1.PDGroup
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &g))
		return len(g.Status.Conditions) > 0
	}, timeout, tick)
}

func touch(t *testing.T, namespace, name, note string) {
	t.Helper()
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, note))
	require.NoError(t, api.Patch(t.Context(), g, patch))
}

// metric returns the value of the first series of a metric with a label.
func metric(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == label {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return 0
}

func TestAPanicIsContainedAndCounted(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	r, _ := run(t, namespace, "panicky")
	create(t, namespace, "panics")
	require.Eventually(t, func() bool { return metric(t, "controller_runtime_reconcile_panics_total", "panicky") > 1 }, timeout, tick)
	create(t, namespace, "sound")
	isReady(t, namespace, "sound")
	assert.NotZero(t, r.count(types.NamespacedName{Namespace: namespace, Name: "panics"}))
}

func TestTwoOperatorsRunInOneProcessAndOneAfterTheOther(t *testing.T) {
	one, other := controlplane.CreateNamespace(t, api), controlplane.CreateNamespace(t, api)
	_, stop := run(t, one, "first")
	run(t, other, "second")
	create(t, one, "a")
	create(t, other, "b")
	isReady(t, one, "a")
	isReady(t, other, "b")
	stop()
	run(t, one, "first")
	create(t, one, "c")
	isReady(t, one, "c")
}

func TestAnIdleOperatorLogsNothing(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	r, _ := run(t, namespace, "idle")
	create(t, namespace, "a")
	isReady(t, namespace, "a")
	key := types.NamespacedName{Namespace: namespace, Name: "a"}
	reconciled := func() { // at least once more
		n := r.count(key)
		touch(t, namespace, "a", fmt.Sprint(n))
		require.Eventually(t, func() bool { return r.count(key) > n }, timeout, tick)
	}
	reconciled()
	line := len(logs.after(0))
	for range 5 {
		reconciled()
	}
	assert.NotContains(t, logs.after(line), namespace)
}

// get returns the status and text that a URL answers with; status 0 if nothing answers.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url) //nolint:noctx // a test
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestMetricsAndProbesAreServed(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	scraped, probes := loopback.Address(t), loopback.Address(t)
	run(t, namespace, "measured", func(f *Flags) { f.MetricsAddress, f.ProbeAddress = scraped, probes })
	create(t, namespace, "a")
	isReady(t, namespace, "a")
	var text string
	require.Eventually(t, func() bool {
		_, text = get(t, "http://"+scraped+"/metrics")
		return strings.Contains(text, `tidb_groups_condition{cluster="a",condition="Ready",kind="PDGroup",name="a",namespace="`+namespace+`",reason="Ready",status="True"} 1`)
	}, timeout, tick)
	assert.Equal(t, 1, strings.Count(text, "# TYPE tidb_groups_condition gauge"))
	assert.Contains(t, text, `tidb_groups_unconverged_seconds{cluster="a",kind="PDGroup",name="a",namespace="`+namespace+`"} 0`)
	for line := range strings.Lines(text) { // what is told is documented
		if name, is := strings.CutPrefix(line, "# TYPE tidb_groups_"); is {
			row, kind, _ := strings.Cut(strings.TrimSpace(name), " ")
			assert.True(t, slices.ContainsFunc(metrics.Table(), func(m metrics.Metric) bool { return m.Name == "tidb_groups_"+row && m.Type == kind }), line)
		}
	}
	assert.Contains(t, text, `tidb_groups_reconcile_outcomes_total{kind="PDGroup",outcome="Done",step="plan"}`)
	for _, path := range []string{"/healthz", "/readyz"} {
		code, body := get(t, "http://"+probes+path)
		assert.Equal(t, http.StatusOK, code, body)
	}
}

func TestProfilesAreServedOnlyAtTheProfilingAddress(t *testing.T) {
	namespace, profiles, probes := controlplane.CreateNamespace(t, api), loopback.Address(t), loopback.Address(t)
	_, stop := run(t, namespace, "profiled", func(f *Flags) { f.ProfilingAddress = profiles })
	for path, says := range map[string]string{"heap": "heap profile:", "goroutine": "goroutine profile:"} {
		var code int
		var text string
		require.Eventually(t, func() bool {
			code, text = get(t, "http://"+profiles+"/debug/pprof/"+path+"?debug=1")
			return code == http.StatusOK
		}, timeout, tick)
		assert.Contains(t, text, says)
	}
	code, text := get(t, "http://"+profiles+"/debug/pprof/profile?seconds=1")
	assert.Equal(t, http.StatusOK, code, text)
	stop()

	run(t, namespace, "not-profiled", func(f *Flags) { f.ProbeAddress = probes })
	require.Eventually(t, func() bool { code, _ := get(t, "http://"+probes+"/readyz"); return code == http.StatusOK }, timeout, tick)
	code, text = get(t, "http://"+profiles+"/debug/pprof/heap")
	assert.Zero(t, code, text)
	code, text = get(t, "http://"+probes+"/debug/pprof/heap")
	assert.Equal(t, http.StatusNotFound, code, text)
}

// S M5: over TLS, to whom the API server knows and lets read.
func TestMetricsAreServedToAuthorizedReaders(t *testing.T) {
	namespace, scraped := controlplane.CreateNamespace(t, api), loopback.Address(t)
	run(t, namespace, "guarded", func(f *Flags) { f.MetricsAddress, f.MetricsSecure = scraped, true })
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		require.NoError(t, api.Create(t.Context(), account))
		request := &authenticationv1.TokenRequest{}
		require.NoError(t, api.SubResource("token").Create(t.Context(), account, request))
		return request.Status.Token
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader-of-" + namespace}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}}}
	for _, o := range []client.Object{role, binding} {
		require.NoError(t, api.Create(t.Context(), o))
		t.Cleanup(func() { assert.NoError(t, api.Delete(context.Background(), o)) })
	}
	reader := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it makes its own certificate
	get := func(authorization string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+scraped+"/metrics", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", authorization)
		response, err := reader.Do(request)
		if err != nil {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode
	}
	may, other := "Bearer "+token("reader"), "Bearer "+token("stranger")
	require.Eventually(t, func() bool { return get(may) == http.StatusOK }, timeout, tick)
	assert.Equal(t, http.StatusForbidden, get(other))
	assert.Equal(t, http.StatusUnauthorized, get("Bearer nonsense"))
	assert.Equal(t, http.StatusUnauthorized, get("Basic cm9vdDpyb290"))
	assert.Equal(t, http.StatusUnauthorized, get(""))
}

func TestTheCacheHoldsOnlyObjectsOfTheSuite(t *testing.T) {
	namespace := controlplane.CreateNamespace(t, api)
	for name, labels := range map[string]map[string]string{"ours": {v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}, "foreign": nil} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}}
		s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		require.NoError(t, api.Create(t.Context(), s))
	}
	r, _ := run(t, namespace, "frugal")
	create(t, namespace, "a")
	isReady(t, namespace, "a")
	var list corev1.ServiceList
	require.NoError(t, r.Client.List(t.Context(), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, "ours", list.Items[0].Name)
	assert.Empty(t, list.Items[0].ManagedFields)
	assert.False(t, r.ClusterScoped)
	assert.InDelta(t, -1, r.Manager.GetConfig().QPS, 0, "no client-side limit by default")

	node, err := stripNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"x": "y"}},
		Status: corev1.NodeStatus{Phase: "x", Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}}, Spec: corev1.NodeSpec{PodCIDR: "x", Unschedulable: true}})
	require.NoError(t, err)
	assert.Equal(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}, Spec: corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")}}}, node)
}
