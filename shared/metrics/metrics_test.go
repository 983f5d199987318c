package metrics_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/metrics"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// cluster is a fake API server and one operator's metrics over it.
type cluster struct {
	client.Client
	registry *prometheus.Registry
}

func newCluster(t *testing.T, kind string, list func() client.ObjectList, objects ...client.Object) cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := cluster{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), prometheus.NewPedanticRegistry()}
	source := metrics.Source{Kind: kind, List: list, Reader: c.Client, Now: clock, View: func(p types.NamespacedName) (pd.View, bool) {
		return pd.View{Stores: []pd.Store{{ID: "4", State: pd.StateOffline, Regions: 34}, {ID: "5", State: pd.StateUp, Regions: 70}}}, p == types.NamespacedName{Namespace: "db", Name: "basic-pd"}
	}}
	if kind == v1alpha1.KindInstance {
		source.Expires = func(claim *corev1.PersistentVolumeClaim) (time.Time, bool) {
			return clock().Add(36 * time.Hour), claim.Name == "tikv-basic-tikv-3"
		}
	}
	require.NoError(t, metrics.Register(c.registry, source))
	return c
}

// series returns what is told, one line for each series, without its help.
func (c cluster) series(t *testing.T) []string {
	t.Helper()
	families, err := c.registry.Gather()
	require.NoError(t, err)
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out = append(out, fmt.Sprintf("%s{%s} %v", strings.TrimPrefix(family.GetName(), "tidb_groups_"), strings.Join(labels, ","), m.GetGauge().GetValue()))
		}
	}
	return out
}

func conditions(of ...metav1.Condition) []metav1.Condition {
	for i := range of {
		of[i].LastTransitionTime = metav1.NewTime(clock().Add(-time.Minute))
	}
	return of
}

func tikvGroup() *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-tikv", Labels: map[string]string{v1alpha1.LabelUmbrella: "basic"}}}
	g.Spec.PDGroup.Name = "basic-pd"
	g.Spec.Replicas = ptr.To(int32(3))
	g.Status.GroupStatus = v1alpha1.GroupStatus{Replicas: 4, ReadyReplicas: 3, UpdatedReplicas: 1, Conditions: conditions(
		metav1.Condition{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDraining})}
	return g
}

func member(kind, group, name, id, state string) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name, Labels: map[string]string{v1alpha1.LabelCluster: "basic-pd", v1alpha1.LabelUmbrella: "basic"}}}
	i.Spec.Group = v1alpha1.InstanceGroup{Kind: kind, Name: group}
	i.Status.Member = &v1alpha1.MemberStatus{ID: id, State: state}
	return i
}

func listTiKV() client.ObjectList { return &v1alpha1.TiKVGroupList{} }

// OPS-03: which object, why, how far, and what of it holds it up.
func TestOPS03MetricsShowTheIdentityAndProgressOfAGroup(t *testing.T) {
	c := newCluster(t, v1alpha1.KindTiKVGroup, listTiKV, tikvGroup(),
		member(v1alpha1.KindTiKVGroup, "basic-tikv", "basic-tikv-3", "4", pd.StateOffline),
		member(v1alpha1.KindTiKVGroup, "basic-tikv", "basic-tikv-0", "5", "made up"),
		member(v1alpha1.KindTiFlashGroup, "basic-tikv", "basic-tiflash-0", "4", pd.StateUp), // another operator tells of it
		member(v1alpha1.KindTiKVGroup, "gone", "gone-0", "4", pd.StateUp))
	who := "cluster=basic,%skind=TiKVGroup,%sname=basic-tikv,namespace=db"
	of := func(before, between string) string { return fmt.Sprintf(who, before, between) }
	assert.Equal(t, []string{
		"condition{" + of("condition=UpToDate,", "") + ",reason=Draining,status=False} 1",
		"member_state{" + of("", "member=basic-tikv-0,") + ",state=Other} 1",
		"member_state{" + of("", "member=basic-tikv-3,") + ",state=Offline} 1",
		"members{" + of("", "") + ",state=desired} 3",
		"members{" + of("", "") + ",state=existing} 4",
		"members{" + of("", "") + ",state=ready} 3",
		"members{" + of("", "") + ",state=updated} 1",
		"store_regions_left{" + of("", "member=basic-tikv-3,") + "} 34",
		"unconverged_seconds{" + of("", "") + "} 60",
	}, c.series(t))
}

func TestSEC01MetricsShowTheDaysUntilCertificatesExpire(t *testing.T) {
	g := tikvGroup()
	g.Status.Certificates = []v1alpha1.CertificateStatus{{SecretName: "a", NotAfter: metav1.NewTime(clock().Add(36 * time.Hour)), NotBefore: &metav1.Time{Time: clock().Add(-12 * time.Hour)}}, {SecretName: "b", NotAfter: metav1.NewTime(clock().Add(-12 * time.Hour))}}
	c := newCluster(t, v1alpha1.KindTiKVGroup, listTiKV, g)
	assert.Equal(t, []string{
		"certificate_days_left{cluster=basic,kind=TiKVGroup,name=basic-tikv,namespace=db,secret=a} 1.5",
		"certificate_days_left{cluster=basic,kind=TiKVGroup,name=basic-tikv,namespace=db,secret=b} -0.5",
		"certificate_lifetime_days{cluster=basic,kind=TiKVGroup,name=basic-tikv,namespace=db,secret=a} 2",
	}, slices.DeleteFunc(c.series(t), func(s string) bool { return !strings.HasPrefix(s, "certificate") }))
}

func TestOPS03MetricsNameTheDisruptedMember(t *testing.T) {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-pd", Labels: map[string]string{v1alpha1.LabelUmbrella: "basic"}}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-pd-disruption"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("TiKVGroup/basic-tikv-1"), AcquireTime: &metav1.MicroTime{Time: clock().Add(-90 * time.Second)}}}
	stray := lease.DeepCopy()
	stray.Name = "other-disruption" // of no PDGroup that there is
	c := newCluster(t, v1alpha1.KindPDGroup, func() client.ObjectList { return &v1alpha1.PDGroupList{} }, g, lease, stray)
	holder := func() []string {
		return slices.DeleteFunc(c.series(t), func(s string) bool { return !strings.HasPrefix(s, "disruption_seconds") })
	}
	assert.Equal(t, []string{"disruption_seconds{cluster=basic,kind=PDGroup,member=basic-tikv-1,member_kind=TiKVGroup,name=basic-pd,namespace=db} 90"}, holder())

	lease.Spec.HolderIdentity = ptr.To("Stranger/x")
	require.NoError(t, c.Update(t.Context(), lease))
	assert.Equal(t, []string{"disruption_seconds{cluster=basic,kind=PDGroup,member=x,member_kind=Other,name=basic-pd,namespace=db} 90"}, holder())

	lease.Spec.HolderIdentity = nil
	require.NoError(t, c.Update(t.Context(), lease))
	assert.Empty(t, holder())
}

// binary reads a Lease as the API server may have it that got it as protobuf: its texts are whatever
// bytes the owner of the namespace wrote.
type binary struct{ client.Reader }

func (b binary) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if l, is := into.(*coordinationv1.Lease); is {
		l.Spec.HolderIdentity = ptr.To("TiKVGroup/\xff")
		return nil
	}
	return b.Reader.Get(ctx, key, into, options...)
}

// P10.
func TestAHolderThatIsNoTextHidesNoMetrics(t *testing.T) {
	pdGroup := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-pd"}}
	c := newCluster(t, v1alpha1.KindPDGroup, func() client.ObjectList { return &v1alpha1.PDGroupList{} }, pdGroup)
	require.NoError(t, metrics.Register(c.registry, metrics.Source{
		Kind: v1alpha1.KindPDGroup, List: func() client.ObjectList { return &v1alpha1.PDGroupList{} }, Reader: binary{c.Client}, Now: clock,
	}))
	assert.True(t, slices.ContainsFunc(c.series(t), func(s string) bool { return strings.Contains(s, "member=?") }))
}

func TestOPS03MetricsShowHowLongAClaimIsRetained(t *testing.T) {
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name, Labels: map[string]string{v1alpha1.LabelInstance: "basic-tikv-3", v1alpha1.LabelCluster: "basic-pd"}}}
	}
	c := newCluster(t, v1alpha1.KindInstance, func() client.ObjectList { return &v1alpha1.InstanceList{} }, claim("tikv-basic-tikv-3"), claim("tikv-basic-tikv-0"))
	assert.Equal(t, []string{"claim_days_left{cluster=basic-pd,kind=PersistentVolumeClaim,member=basic-tikv-3,name=tikv-basic-tikv-3,namespace=db} 1.5"}, c.series(t))
}

// Whatever objects carry, the number of series stays within what is known to be told,
// and nothing is told of what is gone.
func TestOPS03TheNumberOfSeriesIsBounded(t *testing.T) {
	g := tikvGroup()
	g.Status.Conditions = nil
	for _, info := range v1alpha1.ConditionTable() {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: info.Type, Status: metav1.ConditionFalse, Reason: "MadeUp"})
	}
	for n := range 32 {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: fmt.Sprintf("Stranger%d", n), Status: metav1.ConditionTrue, Reason: "x"})
	}
	perMember, perObject := 2, len(v1alpha1.ConditionTable())+1+4
	objects := []client.Object{g}
	for n := range 20 {
		objects = append(objects, member(v1alpha1.KindTiKVGroup, g.Name, fmt.Sprintf("basic-tikv-%d", n), "4", fmt.Sprintf("State%d", n)))
	}
	c := newCluster(t, v1alpha1.KindTiKVGroup, listTiKV, objects...)
	told := c.series(t)
	assert.Len(t, told, perObject+20*perMember)
	for _, s := range told {
		assert.NotContains(t, s, "MadeUp")
		assert.NotContains(t, s, "Stranger")
		assert.NotContains(t, s, "State1")
	}
	require.NoError(t, c.Delete(t.Context(), objects[1]))
	assert.Len(t, c.series(t), perObject+19*perMember)
	require.NoError(t, c.Delete(t.Context(), g))
	assert.Empty(t, c.series(t), "also of the members of a group that is gone")
}

func TestASecondOperatorOfOneProcessTakesTheMetricsOver(t *testing.T) {
	c := newCluster(t, v1alpha1.KindTiKVGroup, listTiKV, tikvGroup())
	other := newCluster(t, v1alpha1.KindTiKVGroup, listTiKV)
	require.NoError(t, metrics.Register(c.registry, metrics.Source{Kind: v1alpha1.KindTiKVGroup, List: listTiKV, Reader: other.Client, Now: clock}))
	assert.Empty(t, c.series(t))
}

func TestEveryMetricAboutAnObjectNamesItAndIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), metrics.Markdown(), "the table of the page is to be:\n%s", metrics.Markdown())
	for _, m := range metrics.Table() {
		if m.Type == "gauge" {
			assert.Equal(t, []string{"kind", "namespace", "name", "cluster"}, m.Labels[:4], m.Name)
		}
	}
}

func TestBR01MetricsShowTheAgeOfALogBackup(t *testing.T) {
	log := func(name string, state v1alpha1.LogState, last *metav1.Time) *v1alpha1.LogBackup {
		return &v1alpha1.LogBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name, CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))},
			Spec:       v1alpha1.LogBackupSpec{State: state}, Status: v1alpha1.LogBackupStatus{CheckpointTime: last},
		}
	}
	c := newCluster(t, v1alpha1.KindLogBackup, func() client.ObjectList { return &v1alpha1.LogBackupList{} },
		log("good", v1alpha1.LogRunning, ptr.To(metav1.NewTime(clock().Add(-time.Minute)))), log("never", v1alpha1.LogPaused, nil), log("stopped", v1alpha1.LogStopped, nil))
	series := c.series(t)
	assert.Contains(t, series, "log_backup_checkpoint_seconds{cluster=,kind=LogBackup,name=good,namespace=db} 60")
	assert.Contains(t, series, "log_backup_checkpoint_seconds{cluster=,kind=LogBackup,name=never,namespace=db} 3600", "one that never begins is told of too")
	assert.NotContains(t, series, "log_backup_checkpoint_seconds{cluster=,kind=LogBackup,name=stopped,namespace=db}")
}

func TestBR02MetricsShowTheAgeOfTheLastGoodBackup(t *testing.T) {
	schedule := func(name string, last *metav1.Time) *v1alpha1.BackupSchedule {
		return &v1alpha1.BackupSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name, CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))},
			Status:     v1alpha1.BackupScheduleStatus{LastBackupTime: last},
		}
	}
	c := newCluster(t, v1alpha1.KindBackupSchedule, func() client.ObjectList { return &v1alpha1.BackupScheduleList{} },
		schedule("good", ptr.To(metav1.NewTime(clock().Add(-time.Minute)))), schedule("never", nil))
	series := c.series(t)
	assert.Contains(t, series, "last_backup_seconds{cluster=,kind=BackupSchedule,name=good,namespace=db} 60")
	assert.Contains(t, series, "last_backup_seconds{cluster=,kind=BackupSchedule,name=never,namespace=db} 3600", "one that never succeeds is told of too")
}

// Nothing on a backup's object names its cluster but the TiDBGroup that it goes through.
func TestMetricsOfBackupsNameTheirCluster(t *testing.T) {
	group := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "sql", Namespace: "db"}}
	group.Spec.PDGroup.Name = "basic-pd"
	of := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "shop-tidb", Namespace: "db", Labels: map[string]string{v1alpha1.LabelUmbrella: "shop"}}}
	of.Spec.PDGroup.Name = "shop-pd"
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "db", CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))}
	}
	daily, lost := &v1alpha1.BackupSchedule{ObjectMeta: meta("daily")}, &v1alpha1.BackupSchedule{ObjectMeta: meta("lost")}
	daily.Spec.Template.TiDBGroup.Name, lost.Spec.Template.TiDBGroup.Name = "sql", "gone"
	daily.Status.Conditions = conditions(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady})
	c := newCluster(t, v1alpha1.KindBackupSchedule, func() client.ObjectList { return &v1alpha1.BackupScheduleList{} }, group, daily, lost)
	series := c.series(t)
	assert.Contains(t, series, "last_backup_seconds{cluster=basic-pd,kind=BackupSchedule,name=daily,namespace=db} 3600")
	assert.Contains(t, series, "condition{cluster=basic-pd,condition=Ready,kind=BackupSchedule,name=daily,namespace=db,reason=Ready,status=True} 1")
	assert.Contains(t, series, "last_backup_seconds{cluster=,kind=BackupSchedule,name=lost,namespace=db} 3600")

	log := &v1alpha1.LogBackup{ObjectMeta: meta("log"), Spec: v1alpha1.LogBackupSpec{TiDBGroup: v1alpha1.LocalReference{Name: "shop-tidb"}}}
	c = newCluster(t, v1alpha1.KindLogBackup, func() client.ObjectList { return &v1alpha1.LogBackupList{} }, of, log)
	assert.Contains(t, c.series(t), "log_backup_checkpoint_seconds{cluster=shop,kind=LogBackup,name=log,namespace=db} 3600")
	assert.Empty(t, log.Labels, "what the cache holds is not changed")
}

// counted counts the objects that are looked up one by one.
type counted struct {
	client.Reader
	gets *int
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	*c.gets++
	return c.Reader.Get(ctx, key, into, options...)
}

// OPS-03: old backups are kept by the hundred, and each look-up copies a TiDBGroup.
func TestAScrapeOfBackupsLooksNoGroupUp(t *testing.T) {
	group := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "sql", Namespace: "db"}}
	group.Spec.PDGroup.Name = "basic-pd"
	objects := []client.Object{group}
	for _, name := range []string{"one", "two", "three"} {
		b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "db"}}
		b.Spec.TiDBGroup.Name = "sql"
		objects = append(objects, b)
	}
	list, gets := func() client.ObjectList { return &v1alpha1.BackupList{} }, 0
	c := newCluster(t, v1alpha1.KindBackup, list, objects...)
	require.NoError(t, metrics.Register(c.registry, metrics.Source{Kind: v1alpha1.KindBackup, List: list, Reader: counted{c.Client, &gets}, Now: clock}))
	assert.Contains(t, c.series(t), "unconverged_seconds{cluster=basic-pd,kind=Backup,name=two,namespace=db} 0")
	assert.Zero(t, gets)
}
