package recovery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// under is a group whose PD is rebuilt from a-0.
func under(t *testing.T, phase v1alpha1.PDRecoveryPhase, changes ...func(*observation.Snapshot)) (*v1alpha1.PDGroup, observation.Snapshot) {
	t.Helper()
	g := stricken(right)
	s := survived(t, g)
	g.Status.Recovery, _ = NextRecord(g, s)
	require.NotNil(t, g.Status.Recovery)
	g.Status.Recovery.Phase = phase
	for _, change := range changes {
		change(&s)
	}
	return g, s
}

// still says that the others have stopped.
func still(s *observation.Snapshot) {
	for _, i := range s.Instances[1:] {
		i.Spec.Suspended, i.Status.PodUID, i.Status.ObservedGeneration = true, "", i.Generation
	}
}

func alone(s *observation.Snapshot) {
	s.PD = pd.View{ClusterID: "73", Leader: "a-0", Members: []pd.Member{{Name: "a-0", ID: "1", Healthy: true}}}
}

func changed(t *testing.T, g *v1alpha1.PDGroup, s observation.Snapshot) (planning.Plan, map[string]*v1alpha1.Instance) {
	t.Helper()
	p, err := MakePlan(g, s)
	require.NoError(t, err)
	out := map[string]*v1alpha1.Instance{}
	for _, c := range p.Instances {
		out[c.Desired.Name] = c.Desired
	}
	return p, out
}

func TestTheOthersStopFirstAndKeepTheirClaims(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryStopping)
	_, desired := changed(t, g, s)
	assert.NotContains(t, desired, "a-0")
	for _, name := range []string{"a-1", "a-2"} {
		assert.True(t, desired[name].Spec.Suspended)
		assert.Equal(t, v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.RetainClaim, WhenScaled: v1alpha1.RetainClaim}, desired[name].Spec.ClaimRetention)
		assert.Equal(t, []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}, desired[name].Finalizers)
	}
	next, o := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryStopping, next.Phase)
	assert.Contains(t, o.Message, "pod of Instance a-1 stops before PD is rebuilt from Instance a-0")

	still(&s)
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase)
	s.Instances[2].Generation++
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryStopping, next.Phase, "its operator has not seen yet that it is suspended")

	still(&s)
	s.Instances[2].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodOfAnotherOwner}}
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryStopping, next.Phase, "the PD of an Instance that was deleted by force may run on")
}

func TestTheSurvivorIsForcedAndThenStartedWithoutTheFlag(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryForcing, still)
	p, desired := changed(t, g, s)
	assert.True(t, ForcesMember(p))
	assert.Equal(t, "r1-forced", desired["a-0"].Spec.Revision)
	assert.JSONEq(t, string(template(t, Flag).Raw), string(desired["a-0"].Spec.PodTemplate.Raw))
	assert.False(t, IsForced(desired["a-1"]))

	alone(&s)
	next, _ := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase, "its pod has not been started again")
	s.Instances[0].Spec = desired["a-0"].Spec
	s.Instances[0].Status.Revision = "r1-forced"
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRestarting, next.Phase)

	g.Status.Recovery.Phase = v1alpha1.RecoveryRestarting
	p, desired = changed(t, g, s)
	assert.False(t, ForcesMember(p))
	assert.Equal(t, "r1", desired["a-0"].Spec.Revision)
	assert.JSONEq(t, string(template(t).Raw), string(desired["a-0"].Spec.PodTemplate.Raw))
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRestarting, next.Phase, "it still has the flag")
}

// P5: it is never Ready again, and only members that join may take its place.
func TestARecoveryGoesOnWhenTheClaimOfTheSurvivorIsBeingDeleted(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryRestarting, still, alone)
	i := s.Instances[0]
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimTerminating, ObservedGeneration: i.Generation})
	next, _ := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRestarting, next.Phase)
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimTerminating, ObservedGeneration: i.Generation})
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRetiring, next.Phase)
}

// P11: with Flag it would forget those that join as often as it starts, and without its claim it
// cannot be started again. Another survivor is obeyed when PD does not answer any more.
func TestASurvivorThatLosesItsClaimWithTheFlagSaysHowToGoOn(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryRestarting, still, alone)
	i := s.Instances[0]
	i.Status.Revision = "r1-forced"
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimTerminating, ObservedGeneration: i.Generation})
	next, o := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRestarting, next.Phase)
	assert.Contains(t, o.Message, "stop the pod: kubectl -n ns delete pod a-0, then name another one: ")
	assert.Contains(t, o.Message, "--overwrite groups.tidb.dev/recover-quorum=INSTANCE/73")

	i.Status.PodUID = ""
	s.Claims["a-0"], s.PD = nil, pd.View{Err: pd.ErrNoLeader}
	s.Instances[1].Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
	g.Annotations[v1alpha1.AnnotationRecoverQuorum] = "a-1/73"
	next, o = NextRecord(g, s)
	assert.Equal(t, "a-1", next.Survivor.Name, "%s", o.Message)
}

func TestAnotherClusterIDEndsTheRecovery(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryForcing, still, alone, func(s *observation.Snapshot) { s.PD.ClusterID = "99" })
	next, o := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase)
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Equal(t, v1alpha1.ReasonClusterIDMismatch, o.Reason)

	s.Instances[1].Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
	g.Annotations[v1alpha1.AnnotationRecoverQuorum] = "a-1/73"
	next, o = NextRecord(g, s)
	assert.Equal(t, "a-1", next.Survivor.Name, "%s", o.Message)
}

func TestTheOthersAreReleasedWhenPDServesWithoutThem(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryRetiring, still)
	p, _ := changed(t, g, s)
	assert.Empty(t, p.Deletes)
	assert.False(t, p.Drained["a-1"], "PD does not answer")
	alone(&s)
	p, _ = changed(t, g, s)
	assert.True(t, p.Drained["a-1"] && p.Drained["a-2"] && !p.Drained["a-0"])
	assert.Empty(t, p.Deletes, "it is said first")
	said := metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue}
	s.Instances[1].Status.Conditions = append(s.Instances[1].Status.Conditions, said)
	p, desired := changed(t, g, s)
	assert.Equal(t, []*v1alpha1.Instance{s.Instances[1]}, p.Deletes)
	assert.True(t, member.HasMemberFinalizer(desired["a-1"]))
	s.Instances[1].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	p, desired = changed(t, g, s)
	assert.Empty(t, p.Deletes)
	assert.False(t, member.HasMemberFinalizer(desired["a-1"]))
	s.Instances = s.Instances[:1]
	next, o := NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryRetiring, next.Phase, "a new member would start with old data")
	assert.Contains(t, o.Message, "annotate pvc data-a-1 groups.tidb.dev/retired=")
	s.Claims["a-1"][0].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	s.Claims["a-2"][0].Annotations = map[string]string{v1alpha1.AnnotationRetired: "left"}
	next, _ = NextRecord(g, s)
	assert.Equal(t, v1alpha1.RecoveryFinished, next.Phase)
}

func TestARecoveryThatWaitsForPDSaysSo(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryRetiring, still)
	_, o := NextRecord(g, s)
	assert.Contains(t, o.Message, "Instance a-1 is deleted once PD answers and lists only member a-0")
	alone(&s)
	_, o = NextRecord(g, s)
	assert.Contains(t, o.Message, "Instance a-1 is being deleted: PD was rebuilt without it")
}

func TestARecoveryCanBeCancelledOnlyBeforeAMemberHasForgottenTheOthers(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryStopping, still)
	g.Annotations = nil
	next, o := NextRecord(g, s)
	assert.Nil(t, next)
	assert.Contains(t, o.Message, "taken back")
	for _, phase := range []v1alpha1.PDRecoveryPhase{v1alpha1.RecoveryForcing, v1alpha1.RecoveryRestarting, v1alpha1.RecoveryRetiring} {
		g.Status.Recovery = g.Status.Recovery.DeepCopy()
		g.Status.Recovery.Phase = phase
		next, _ = NextRecord(g, s)
		assert.NotNil(t, next, "%s goes on", phase)
	}
}

// P3: it may still be taken back, and then PD needs that member's data.
func TestADeletedMemberStaysWhileARecoveryCanBeTakenBack(t *testing.T) {
	for phase, goes := range map[v1alpha1.PDRecoveryPhase]bool{v1alpha1.RecoveryStopping: false, v1alpha1.RecoveryForcing: true} {
		g, s := under(t, phase, func(s *observation.Snapshot) { s.Instances[1].DeletionTimestamp = ptr.To(metav1.NewTime(clock())) })
		plan, desired := changed(t, g, s)
		assert.Equal(t, goes, plan.Drained["a-1"], phase)
		assert.True(t, desired["a-1"].Spec.Suspended, phase)
		s.Claims["a-1"][0].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
		plan, _ = changed(t, g, s)
		assert.True(t, plan.Drained["a-1"], "its pod cannot be stopped otherwise")
	}
}

func TestARecoveryEndsByItselfWhenPDHasAQuorumBeforeItHasBegun(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryStopping)
	s.PD = pd.View{ClusterID: "73", Leader: "a-1", Members: []pd.Member{{Name: "a-0", Healthy: true}, {Name: "a-1", Healthy: true}, {Name: "a-2"}}}
	next, o := NextRecord(g, s)
	assert.Nil(t, next)
	assert.Contains(t, o.Message, "quorum again")
}

// named has another request stand in the annotation.
func named(g *v1alpha1.PDGroup, request string) {
	g.Annotations = map[string]string{v1alpha1.AnnotationRecoverQuorum: request}
}

// PD-22: also when the first has answered once and is lost then.
func TestAnotherSurvivorMayBeNamedWhileTheFirstDoesNotAnswer(t *testing.T) {
	for _, phase := range []v1alpha1.PDRecoveryPhase{v1alpha1.RecoveryForcing, v1alpha1.RecoveryRestarting} {
		t.Run(string(phase), func(t *testing.T) {
			g, s := under(t, phase, still)
			_, desired := changed(t, g, s)
			s.Instances[0].Spec, s.Instances[0].Status.Revision = desired["a-0"].Spec, desired["a-0"].Spec.Revision
			s.Instances[0].Status.Conditions[0].Status = metav1.ConditionFalse
			_, o := NextRecord(g, s)
			assert.Contains(t, o.Message, "name another one: kubectl -n ns annotate")

			s.Instances[1].Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
			named(g, "a-1/73")
			next, o := NextRecord(g, s)
			require.Equal(t, "a-1", next.Survivor.Name, "%s", o.Message)
			assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase, "a-0 has forgotten the others, and that is known for good")
			g.Status.Recovery = next
			p, desired := changed(t, g, s)
			assert.True(t, desired["a-0"].Spec.Suspended)
			assert.False(t, ForcesMember(p), "a-0 runs")
			next, o = NextRecord(g, s)
			assert.Equal(t, v1alpha1.RecoveryForcing, next.Phase)
			assert.Contains(t, o.Message, "the pod of Instance a-0 stops before PD is rebuilt from Instance a-1")

			g.Annotations = nil
			next, _ = NextRecord(g, s)
			assert.NotNil(t, next, "it is not taken back")
			alone(&s)
			next, _ = NextRecord(g, s)
			assert.NotNil(t, next, "nor does it end when a-0 answers after all")

			s.Instances[0].Spec.Suspended, s.Instances[0].Status.PodUID = true, ""
			p, desired = changed(t, g, s)
			assert.True(t, ForcesMember(p))
			assert.False(t, desired["a-1"].Spec.Suspended)
		})
	}
}

func TestNoOtherSurvivorIsTakenWhenTheFirstServes(t *testing.T) {
	for _, c := range []struct {
		phase v1alpha1.PDRecoveryPhase
		seen  func(*observation.Snapshot)
		words string
	}{
		{v1alpha1.RecoveryForcing, alone, "being rebuilt from Instance a-0, which answers"},
		{v1alpha1.RecoveryRestarting, alone, "being rebuilt from Instance a-0, which answers"},
		{v1alpha1.RecoveryRetiring, alone, "the others are being deleted"},
		{v1alpha1.RecoveryRetiring, func(*observation.Snapshot) {}, "the others are being deleted"},
		{v1alpha1.RecoveryRestarting, func(s *observation.Snapshot) {
			s.ClusterInstances = append(s.ClusterInstances, client("TiKVGroup", "b", true))
		}, "not yet: Instance b-0"},
	} {
		g, s := under(t, c.phase, still, c.seen)
		s.Instances[1].Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
		named(g, "a-1/73")
		next, o := NextRecord(g, s)
		assert.Equal(t, "a-0", next.Survivor.Name)
		assert.Equal(t, v1alpha1.ReasonRecoveryRefused, o.Reason)
		assert.Contains(t, o.Message, c.words)
		assert.Contains(t, o.Message, "kubectl -n ns ")
	}
}

// PD-22: a user who removes the survivor's Instance by force gets told what to type,
// and no member starts on what it has left.
func TestASurvivorThatIsGoneIsReplacedAndItsClaimNeverUsedAgain(t *testing.T) {
	for _, phase := range []v1alpha1.PDRecoveryPhase{v1alpha1.RecoveryForcing, v1alpha1.RecoveryRestarting} {
		g, s := under(t, phase, still)
		s.Instances = s.Instances[1:]
		s.Instances[0].Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
		_, o := NextRecord(g, s)
		assert.Contains(t, o.Message, "Instance a-0, which PD is rebuilt from, is gone: name another one: kubectl -n ns annotate")
		named(g, "a-1/73")
		next, o := NextRecord(g, s)
		require.Equal(t, "a-1", next.Survivor.Name, "%s", o.Message)
		assert.Equal(t, []v1alpha1.PDRecoveryMember{{Name: "a-0", UID: "uid-a-0"}, {Name: "a-2", UID: "uid-a-2"}}, next.Discarded)

		next.Phase = v1alpha1.RecoveryRetiring
		g.Status.Recovery = next
		s.Instances = s.Instances[:1]
		s.Claims["a-2"][0].Annotations = map[string]string{v1alpha1.AnnotationRetired: "left"}
		next, o = NextRecord(g, s)
		assert.Equal(t, v1alpha1.RecoveryRetiring, next.Phase)
		assert.Contains(t, o.Message, "annotate pvc data-a-0")
	}
	g, s := under(t, v1alpha1.RecoveryRetiring, still)
	s.Instances = s.Instances[1:]
	_, o := NextRecord(g, s)
	assert.Contains(t, o.Message, "no other can be named now")
	assert.NotContains(t, o.Message, "name another one")
}

func TestAPausedRecoveryStandsStill(t *testing.T) {
	g, s := under(t, v1alpha1.RecoveryStopping)
	g.Spec.Paused = true
	p, _ := changed(t, g, s)
	assert.Empty(t, p.Instances)
	next, o := NextRecord(g, s)
	assert.Equal(t, g.Status.Recovery, next)
	assert.Equal(t, v1alpha1.ReasonPaused, o.Reason)
}
