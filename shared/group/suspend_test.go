package group

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// sweeping is a Component that has something to take back of each member.
type sweeping struct{ careful }

func (sweeping) Sweep(i *v1alpha1.Instance) []Call {
	return []Call{{Verb: RestoreStore, Instance: i.Name}}
}

// clean is one that has nothing to take back.
type clean struct{ careful }

func (clean) Sweep(*v1alpha1.Instance) []Call { return nil }
func (clean) Dead(*v1alpha1.Instance) string  { return "" }

func TestASuspendedGroupGivesTheLeaseBackWhenItsHolderHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		holder, pod string
		silent      bool
		component   Component
		gives       bool
	}{
		"its pod is gone":                      {"uid", "", false, clean{}, true},
		"its pod still runs":                   {"uid", "pod", false, clean{}, false},
		"something is still to be taken back":  {"uid", "", false, sweeping{}, false},
		"PD says nothing":                      {"uid", "", true, clean{}, false},
		"another group's member holds it":      {"other", "", false, clean{}, false},
		"nobody holds it, and nobody gives it": {"", "", false, clean{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := kv(1, "uid")
			i.Status.PodUID = types.UID(c.pod)
			s := Snapshot{Instances: []*v1alpha1.Instance{i}}
			if c.holder != "" {
				s.Lease = lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: i.Name, UID: types.UID(c.holder)}}
			}
			plan := Plan{}
			rest(&plan, &v1alpha1.TiKVGroup{}, s, Rendering{Disrupt: c.component, Silent: c.silent})
			assert.Equal(t, c.gives, plan.Lease.Give)
		})
	}
}

// P5: the Lease of a member that was deleted and comes back does not wait for the
// group to be resumed.
func TestAnHeirThatASuspendedGroupWaitsForGivesTheLeaseBack(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	g.Spec.PDGroup.Name, g.Spec.Suspended, g.Spec.Replicas = "pd", true, ptr.To(int32(1))
	s := Snapshot{HolderReturns: true, Lease: lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-2", UID: "old"}, Returns: "kv"}}
	plain := func(i *v1alpha1.Instance) *v1alpha1.Instance {
		i.Spec.PodTemplate.Raw, i.Spec.Suspended = []byte("{}"), true
		return i
	}
	s.Instances = []*v1alpha1.Instance{plain(kv(0, "0"))}
	planned := func(c Component) Plan {
		plan, err := MakePlan(g, s, Rendering{Disrupt: c})
		assert.NoError(t, err)
		return plan
	}
	plan := planned(clean{})
	assert.False(t, plan.Lease.Give)
	at := slices.IndexFunc(plan.Instances, func(c InstanceChange) bool { return c.Live == nil })
	if assert.GreaterOrEqual(t, at, 0, "its slot is filled, or its store would be forgotten") {
		assert.Equal(t, "kv-2", plan.Instances[at].Desired.Name)
		assert.True(t, plan.Instances[at].Desired.Spec.Suspended, "without a pod")
	}

	s.RetiredSlots = map[int32]bool{2: true}
	assert.True(t, planned(clean{}).Lease.Give, "nobody comes in the slot of a retired claim")
	s.RetiredSlots = nil

	heir := plain(kv(2, "new"))
	s.Instances = append(s.Instances, heir)
	plan = planned(clean{})
	assert.False(t, plan.Lease.Give, "what was begun is to be seen by its mark first")
	assert.Equal(t, Restart, plan.disrupted["kv-2"])

	marked(heir)
	plan = planned(sweeping{})
	assert.False(t, plan.Lease.Give)
	assert.Contains(t, plan.Calls, Call{Verb: RestoreStore, Instance: "kv-2"})
	assert.True(t, planned(clean{}).Lease.Give)
}

func TestASuspendedGroupWithoutPodsIsNotWaitedFor(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	for reason, waits := range map[string]bool{
		v1alpha1.ReasonSuspended: true, v1alpha1.ReasonProgressing: true, v1alpha1.ReasonVolumeChangeFailed: true,
		v1alpha1.ReasonNewRendering: false, v1alpha1.ReasonVolumeChangePending: false, v1alpha1.ReasonDraining: false,
	} {
		t.Run(reason, func(t *testing.T) {
			other := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", Generation: 2}}
			other.Spec.Suspended = true
			other.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: 2}}
			got := SuspendWait(pd, Snapshot{Groups: []v1alpha1.Group{other}})
			assert.Equal(t, waits, got != "", got)
			if waits {
				assert.Contains(t, got, "TiDBGroup db has to stop first: kubectl -n ns describe tidbgroup db")
			}
			other.Generation = 3
			assert.NotEmpty(t, SuspendWait(pd, Snapshot{Groups: []v1alpha1.Group{other}}), "it has not seen its spec yet")
		})
	}
}

// GRP-06: of an edit of all groups the last kind's may be seen last.
func TestAGroupLooksWhoElseIsSuspendedBeforeItStops(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	pd.Spec.Suspended = true
	runs := kv(1, "uid")
	stops := runs.DeepCopy()
	stops.Spec.Suspended = true
	plan := Plan{Instances: []InstanceChange{{Live: runs, Desired: stops}}}
	for name, c := range map[string]struct {
		suspended bool
		plan      Plan
		end       step.Kind
	}{
		"another one is to stop first":          {true, plan, step.KindAfter},
		"the others are to run":                 {false, plan, step.KindDone},
		"nobody is suspended who is not so yet": {true, Plan{Instances: []InstanceChange{{Live: stops, Desired: stops}}}, step.KindDone},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
			db.Spec.PDGroup.Name, db.Spec.Suspended = "pd", c.suspended
			scheme, err := operator.NewScheme()
			require.NoError(t, err)
			env := operator.Env{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pd, db).Build()}
			assert.Equal(t, c.end, lastFirst(t.Context(), env, pd, c.plan).Kind)
		})
	}
}

func TestAPodThatRunsOnSaysForWhom(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Suspended = true
	i := kv(1, "uid")
	i.Status.PodUID = "pod"
	says := func(r Rendering) string {
		return unready(&Plan{}, g, Snapshot{Instances: []*v1alpha1.Instance{i}}, r).Message
	}
	assert.Equal(t, "pod kv-1 still runs: TiDBGroup db has to stop first", says(Rendering{SuspendWait: "TiDBGroup db has to stop first"}))
	i.Spec.Suspended = true
	assert.Equal(t, "pod kv-1 is still stopping", says(Rendering{SuspendWait: "TiDBGroup db has to stop first"}))
}

func TestKV13RegionsAreAskedForBeforeTheLeaseIsTaken(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Status.UpdateRevision = "r1"
	for name, c := range map[string]struct {
		change func(*v1alpha1.Instance)
		due    bool
	}{
		"nothing is to be done":   {func(*v1alpha1.Instance) {}, false},
		"another revision":        {func(i *v1alpha1.Instance) { i.Spec.Revision = "r0" }, true},
		"a deleted member":        {func(i *v1alpha1.Instance) { doomed(i) }, true},
		"a person asked":          {func(i *v1alpha1.Instance) { i.Annotations = map[string]string{v1alpha1.AnnotationRestart: "now"} }, true},
		"it may run with another": {func(i *v1alpha1.Instance) { i.Status.MadeFrom = "r0" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			i := kv(1, "uid")
			i.Spec.Revision = "r1"
			c.change(i)
			assert.Equal(t, c.due, restartsDue(g, Snapshot{Instances: []*v1alpha1.Instance{i}}))
		})
	}
}

// P5: what others wait for ends.
func TestASuspendedGroupDoesNotWaitForAReplacementThatIsPutOff(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.VolumeReplacement, g.Spec.Disruption = v1alpha1.ReplaceVolumes, &v1alpha1.Disruption{Paused: true}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("2Gi"), StorageClassName: ptr.To("fast")}}
	s := Snapshot{Instances: []*v1alpha1.Instance{on(0, "slow", "2Gi")}}
	s.Instances[0].Status.Volumes[0].PersistentVolume = "pv"
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, volumeChange(g, s, Rendering{}).Reason)
	g.Spec.Suspended = true
	reason := volumeChange(g, s, Rendering{}).Reason
	assert.Equal(t, v1alpha1.ReasonVolumeChangePending, reason)
	assert.True(t, stopped(reason))
}

func TestARefusedGrowthHoldsNoRollOfOthersUp(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	pd.Status.Replicas, pd.Status.UpdatedReplicas, pd.Status.ReadyReplicas, pd.Status.CurrentRevision, pd.Status.UpdateRevision = 3, 3, 3, "r", "r"
	open := func(reason string) bool {
		pd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason}}
		return RollGate(&v1alpha1.TiKVGroup{}, Snapshot{Groups: []v1alpha1.Group{pd}}).Open
	}
	for _, reason := range []string{v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded} {
		assert.True(t, open(reason), reason)
	}
	assert.False(t, open(v1alpha1.ReasonPodPending))
	pd.Status.ReadyReplicas = 2
	assert.False(t, open(v1alpha1.ReasonQuotaExceeded), "it may be the claim of a member that rolls")
	pd.Status.ReadyReplicas, pd.Status.UpdateRevision = 3, "s"
	assert.False(t, open(v1alpha1.ReasonClaimRejected), "it has yet to roll itself")
}

// GRP-04: a scale-in or a volume that is told of may hide a roll that is still ahead.
func TestAGroupThatHasYetToRollIsWaitedForWhateverItSays(t *testing.T) {
	kv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	for _, reason := range []string{
		v1alpha1.ReasonDraining, v1alpha1.ReasonScaleInRefused, v1alpha1.ReasonVolumeChanging, v1alpha1.ReasonVolumeChangeFailed,
		v1alpha1.ReasonVolumeChangePending, v1alpha1.ReasonAttributesClassAbsent, v1alpha1.ReasonAttributesUnsupported, v1alpha1.ReasonNewRendering,
		v1alpha1.ReasonEvictingLeaders,
	} {
		kv.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: reason}}
		for update, open := range map[string]bool{"r": true, "s": false} {
			kv.Status.CurrentRevision, kv.Status.UpdateRevision = "r", update
			gate := RollGate(&v1alpha1.TiDBGroup{}, Snapshot{Groups: []v1alpha1.Group{kv}})
			assert.Equal(t, open, gate.Open, "%s at r, to be at %s: %s", reason, update, gate.Message)
		}
	}
}

// P11: what holds a roll up is told of while volumes change.
func TestAVolumeHidesNoRollThatIsHeldUp(t *testing.T) {
	grows := step.Wait("Instance", waitDeadline, v1alpha1.ReasonVolumeChanging, "it grows")
	crashes := step.Wait("Instance", waitDeadline, v1alpha1.ReasonContainerCrashing, "it crashes")
	held := step.Wait("PD", waitDeadline, v1alpha1.ReasonUpdateHeld, "it is held")
	assert.Equal(t, held, foremost(grows, held, step.Done()))
	assert.Equal(t, grows, foremost(grows, step.Done(), step.Done()))
	assert.Equal(t, crashes, foremost(crashes, held, grows))
}

// P5: a deleted store of a suspended group stops, and starts again to leave.
func TestADeletedMemberStopsWithItsGroup(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	i := doomed(kv(1, "uid"))
	open := Rendering{Disrupt: clean{}, Gate: gate.Result{Open: true}}
	stops := func(r Rendering) bool { return parting(i, &Plan{}, g, r, Eviction{}).Spec.Suspended }
	assert.False(t, stops(open))
	g.Spec.Suspended = true
	assert.True(t, stops(open))
	assert.False(t, stops(Rendering{Disrupt: clean{}, SuspendWait: "TiDBGroup db has to stop first"}))
	i.Spec.Suspended, g.Spec.Suspended = true, false
	assert.False(t, stops(open))
	assert.True(t, stops(Rendering{Disrupt: clean{}}), "PD is to be Ready first")
}
