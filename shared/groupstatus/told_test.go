package groupstatus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// U 4, U 7: what kubectl get shows of a group, and what only a user can fix is Stalled.
func TestAGroupTellsWhatAUserMustFix(t *testing.T) {
	stalled := func(reason string) *v1alpha1.Instance {
		i := instance(1, func(s *conditions.Set) { s.Finish(conditions.Verdict{Outcome: step.Stall(reason, "why")}) })
		i.Name = "kv-0"
		return i
	}
	wait := func(reason, message string) step.Outcome { return step.Wait("x", time.Minute, reason, message) }
	for name, c := range map[string]struct {
		instance        *v1alpha1.Instance
		end             step.Outcome
		before          string // the reason reported for the last 30 s
		stalled         bool
		reason, message string
	}{
		"a member with a wrong image":            {stalled(v1alpha1.ReasonImagePullFailed), wait(v1alpha1.ReasonImagePullFailed, "Instance kv-0: why"), "", true, v1alpha1.ReasonImagePullFailed, "Instance kv-0: why"},
		"one that is not what is told":           {stalled(v1alpha1.ReasonImagePullFailed), wait(v1alpha1.ReasonRestarting, "Instance kv-1: why"), "", false, v1alpha1.ReasonRestarting, "Instance kv-1: why"},
		"a lost claim, whose member is replaced": {stalled(v1alpha1.ReasonClaimLost), wait(v1alpha1.ReasonClaimLost, "Instance kv-0: why"), "", false, v1alpha1.ReasonClaimLost, "Instance kv-0: why"},
		"a scale-in refused just now":            {nil, wait(v1alpha1.ReasonScaleInRefused, "too few"), v1alpha1.ReasonDraining, false, v1alpha1.ReasonScaleInRefused, "too few"},
		"one that is refused for long":           {nil, wait(v1alpha1.ReasonScaleInRefused, "too few"), v1alpha1.ReasonScaleInRefused, true, v1alpha1.ReasonScaleInRefused, "too few"},
		"an invalid entry":                       {nil, step.Stall(v1alpha1.ReasonInvalidSpec, "spec.config: bad"), "", true, v1alpha1.ReasonInvalidSpec, "spec.tikv[].config: bad: kubectl -n ns edit tidbcluster basic"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "basic-tikv", Generation: 1,
				OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "basic", Controller: ptr.To(true)}}}}
			if c.before != "" {
				old := conditions.New(nil, 1, clock().Add(-30*time.Second))
				old.Finish(conditions.Verdict{Outcome: wait(c.before, "x")})
				g.Status.Conditions = old.List()
			}
			s := observation.Snapshot{Now: clock()}
			if c.instance != nil {
				s.Instances = []*v1alpha1.Instance{c.instance}
			}
			set := conditions.New(g.Status.Conditions, 1, clock())
			status := groupstatus.Report(g, s, planning.Plan{Outcome: c.end}, groupstatus.Work{Acted: step.Done(), Serving: true}, set)
			assert.Equal(t, c.stalled, set.Is(v1alpha1.ConditionStalled))
			assert.Equal(t, c.reason, status.Reason)
			assert.Equal(t, c.message, status.Message)
		})
	}
}

func TestSEC01AGroupReportsAnExpiringCertificate(t *testing.T) {
	ca, err := pki.New(clock())
	require.NoError(t, err)
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1}}
	s := observation.Snapshot{Now: clock()}
	s.Certificates.Member.Name = "kv-cluster-secret"
	s.Certificates.Member.Data, err = ca.Secret(pki.Leaf{From: clock().Add(-99 * time.Hour), Until: clock().Add(time.Hour)})
	require.NoError(t, err)
	set := conditions.New(nil, 1, clock())
	status := groupstatus.Report(g, s, planning.Plan{Outcome: step.Done()}, groupstatus.Work{Acted: step.Done(), Serving: true}, set)
	assert.True(t, set.Is(v1alpha1.ConditionUpToDate), "it is what the spec asks for")
	assert.Equal(t, v1alpha1.ReasonCertificateExpiring, status.Reason)
	assert.Contains(t, status.Message, "Secret kv-cluster-secret, key tls.crt: it expires at")
	assert.Contains(t, set.Get(v1alpha1.ConditionUpToDate).Message, "kubectl -n ns edit secret kv-cluster-secret")
}

func TestSEC01ACertificateThatStaysUnsignedNeedsAUser(t *testing.T) {
	waits := step.Wait("Secret", time.Second, v1alpha1.ReasonWaitingForCertificate, "Issuer corp has not signed it yet")
	for since, stalled := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1}}
		old := conditions.New(nil, 1, clock().Add(-since))
		old.Finish(conditions.Verdict{Outcome: waits})
		g.Status.Conditions = old.List()
		set := conditions.New(g.Status.Conditions, 1, clock())
		groupstatus.Report(g, observation.Snapshot{Now: clock()}, planning.Plan{Outcome: waits}, groupstatus.Work{Acted: step.Done()}, set)
		assert.Equal(t, stalled, set.Is(v1alpha1.ConditionStalled), since)
	}
}

// P9: its stores are stopped, and PD, which lists them as Up, does not answer about regions any
// more. Nothing comes back, and the next poll would say so a second time.
func TestASuspendedGroupDoesNotRecover(t *testing.T) {
	i := instance(1, func(s *conditions.Set) {
		s.MarkFalse(v1alpha1.ConditionPodReady, v1alpha1.ReasonSuspended, "stopped")
	})
	i.Status.Member = &v1alpha1.MemberStatus{ID: "1"}
	s := observation.Snapshot{Now: clock(), Instances: []*v1alpha1.Instance{i}, RegionsErr: errors.New("no answer in time")}
	s.PD.Stores = []pd.Store{{ID: "1", State: pd.StateUp, Regions: 10}}
	for suspended, want := range map[bool]string{false: v1alpha1.ReasonRecovering, true: v1alpha1.ReasonUpToDate} {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1}}
		g.Spec.Suspended = suspended
		set := conditions.New(nil, 1, clock())
		groupstatus.Report(g, s, planning.Plan{Outcome: step.Done()}, groupstatus.Work{Acted: step.Done(), Serving: true}, set)
		assert.Equal(t, want, set.Get(v1alpha1.ConditionUpToDate).Reason, "suspended: %t", suspended)
	}
}

func TestAGroupNamesMembersWithoutLeaders(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1}}
	i := instance(1, func(s *conditions.Set) {
		s.Finish(conditions.Verdict{Serving: true, Summary: "x", Outcome: step.Done()})
	})
	i.Annotations = map[string]string{v1alpha1.AnnotationEvictLeaders: "disk", v1alpha1.AnnotationLeadersEvicted: "disk"}
	set := conditions.New(nil, 1, clock())
	status := groupstatus.Report(g, observation.Snapshot{Now: clock(), Instances: []*v1alpha1.Instance{i}}, planning.Plan{Outcome: step.Done()}, groupstatus.Work{Acted: step.Done(), Serving: true}, set)
	assert.True(t, set.Is(v1alpha1.ConditionUpToDate))
	assert.Equal(t, v1alpha1.ReasonLeadersEvicted, status.Reason)
	assert.Contains(t, status.Message, "no leaders on basic-pd-0")
}

func TestASuspendedGroupSaysSoWhileItIsPaused(t *testing.T) {
	for name, c := range map[string]struct {
		pod, reason string
	}{
		"that has stopped": {"", v1alpha1.ReasonSuspended},
		"that runs on":     {"p", v1alpha1.ReasonReady},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1}}
			g.Spec.Suspended, g.Spec.Paused, g.Spec.Replicas = true, true, ptr.To[int32](1)
			i := instance(1, func(s *conditions.Set) { s.Finish(conditions.Verdict{Serving: c.pod != "", Outcome: step.Done()}) })
			i.Status.PodUID = types.UID(c.pod)
			set := conditions.New(nil, 1, clock())
			groupstatus.Report(g, observation.Snapshot{Now: clock(), Instances: []*v1alpha1.Instance{i}}, planning.Plan{Outcome: step.Done()}, groupstatus.Work{Acted: step.Done(), Serving: c.pod != ""}, set)
			assert.Equal(t, c.reason, set.Get(v1alpha1.ConditionReady).Reason, set.Get(v1alpha1.ConditionReady).Message)
		})
	}
}

// What would end a pause or a suspension changes nothing of a group that is being deleted.
func TestADeletedGroupSaysThatItIs(t *testing.T) {
	for name, put := range map[string]func(*v1alpha1.TiKVGroup){
		"suspended": func(g *v1alpha1.TiKVGroup) { g.Spec.Suspended = true },
		"paused":    func(g *v1alpha1.TiKVGroup) { g.Spec.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", Generation: 1, DeletionTimestamp: ptr.To(metav1.NewTime(clock()))}}
			put(g)
			set := conditions.New(nil, 1, clock())
			end := step.Wait("Instance", time.Minute, v1alpha1.ReasonDeleting, "1 Instances are still being deleted")
			status := groupstatus.Report(g, observation.Snapshot{Now: clock()}, planning.Plan{Outcome: end}, groupstatus.Work{Acted: step.Done()}, set)
			assert.Equal(t, v1alpha1.ReasonDeleting, status.Reason)
			assert.Equal(t, v1alpha1.ReasonDeleting, set.Get(v1alpha1.ConditionReady).Reason)
			assert.False(t, set.Is(v1alpha1.ConditionPaused))
		})
	}
}
