package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// recovering is a component whose members have recovered, if they may have.
type recovering struct{ componenttest.Clean }

func (recovering) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{Ready: true}
}

func (recovering) IsNotServing(*v1alpha1.Instance) bool { return false }

func (recovering) NeedsLease(component.Disruption) bool { return true }

func (recovering) Allows(component.Disruption) verdict.Verdict {
	return verdict.Refuse("another one is down")
}

func (recovering) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// P7, P5: a member that was permitted to stop, and whose pod is left running by the
// instance operator, keeps the Lease only as long as a user asks for the restart and
// it may come. Until then it keeps it, also when it would not be safe to begin now: P1.
func TestAMemberThatMayStopAndDoesNotGivesTheLeaseBack(t *testing.T) {
	type scene struct {
		i *v1alpha1.Instance
		s *observation.Snapshot
	}
	says := func(kind string, status metav1.ConditionStatus, reason string) func(scene) {
		return func(c scene) {
			c.i.Status.Conditions = append([]metav1.Condition{{Type: kind, Status: status, Reason: reason, ObservedGeneration: c.i.Generation}}, c.i.Status.Conditions...)
		}
	}
	rejected := func(c scene) {
		says(v1alpha1.ConditionUpToDate, "False", v1alpha1.ReasonPodRejected)(c)
		says(v1alpha1.ConditionReady, "True", v1alpha1.ReasonReady)(c)
	}
	terminating := func(c scene) {
		says(v1alpha1.ConditionUpToDate, "False", v1alpha1.ReasonClaimTerminating)(c)
		says(v1alpha1.ConditionReady, "False", v1alpha1.ReasonClaimTerminating)(c)
		says(v1alpha1.ConditionHealthy, "True", v1alpha1.ReasonMemberHealthy)(c)
		says(v1alpha1.ConditionPodReady, "True", v1alpha1.ReasonPodReady)(c)
	}
	byStop := func(c scene) { c.i.Spec.StopPod = c.i.Status.PodUID }
	byEdit := func(c scene) { c.i.Status.Revision = "before" }
	annotated := func(c scene) {
		c.i.Annotations[v1alpha1.AnnotationRestart], c.i.Annotations[v1alpha1.AnnotationRestarted] = "now", "now"
	}
	older := func(c scene) { c.i.Generation++ }
	for name, c := range map[string]struct {
		is        []func(scene)
		withdrawn bool
		given     bool
	}{
		"its replacement is refused, and no user asks":         {[]func(scene){byStop, rejected}, true, false},
		"and who asked by an annotation still does":            {[]func(scene){byStop, rejected, annotated}, false, false},
		"and a user asks once more":                            {[]func(scene){byStop, says(v1alpha1.ConditionUpToDate, "False", v1alpha1.ReasonRestartPending), annotated, func(c scene) { c.i.Annotations[v1alpha1.AnnotationRestart] = "again" }}, false, false},
		"and its node is still cordoned":                       {[]func(scene){byStop, rejected, func(c scene) { c.s.Cordoned = map[string]bool{"n": true} }}, false, false},
		"which is said of an older version of it":              {[]func(scene){byStop, rejected, older}, false, false},
		"the stop has been taken back":                         {[]func(scene){says(v1alpha1.ConditionUpToDate, "True", ""), says(v1alpha1.ConditionReady, "True", "")}, false, true},
		"the stop has been taken back, and no status says so":  {[]func(scene){says(v1alpha1.ConditionUpToDate, "True", ""), says(v1alpha1.ConditionReady, "True", ""), older}, false, false},
		"it stopped all the same":                              {[]func(scene){says(v1alpha1.ConditionUpToDate, "False", v1alpha1.ReasonPodTerminating), says(v1alpha1.ConditionReady, "False", v1alpha1.ReasonPodTerminating)}, false, false},
		"it is about to be stopped":                            {[]func(scene){byStop, says(v1alpha1.ConditionUpToDate, "False", v1alpha1.ReasonRestartPending), says(v1alpha1.ConditionReady, "True", "")}, false, false},
		"the replacement of an edit is refused":                {[]func(scene){byEdit, rejected}, false, false},
		"its claim is being deleted":                           {[]func(scene){byStop, terminating}, false, true},
		"its claim is being deleted, though a user asks":       {[]func(scene){byStop, terminating, annotated}, false, true},
		"its claim is being deleted after an edit":             {[]func(scene){byEdit, terminating}, false, true},
		"which is said of the version before the edit":         {[]func(scene){byEdit, terminating, older}, false, false},
		"its claim is being deleted, and its pod not ready":    {[]func(scene){byStop, terminating, func(c scene) { c.i.Status.Conditions[0].Status = "False" }}, false, false},
		"its claim is being deleted, and an empty one will do": {[]func(scene){byStop, terminating, func(c scene) { c.i.Spec.ClaimLoss = v1alpha1.RecreateLostClaim }}, false, false},
		"its claim is deleted when it is back":                 {[]func(scene){terminating}, false, true},
		"its claim is deleted, and PD does not call it back":   {[]func(scene){terminating, func(c scene) { c.i.Status.Conditions[1].Status = "False" }}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
			g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(int32(1))
			r := component.Rendering{ReadinessGates: []string{v1alpha1.ConditionHealthy}, Inputs: "one", Component: recovering{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}, ClaimLoss: v1alpha1.HoldOnClaimLoss}
			target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
			require.NoError(t, err)
			stored, err := rollout.NewRevision(g, target)
			require.NoError(t, err)
			i, err := component.NewInstance(g, r, target, 0)
			require.NoError(t, err)
			i.UID, i.Generation, i.ResourceVersion = "kv-0", 2, "7"
			i.Status.PodUID, i.Status.Revision, i.Status.NodeName = "pod", target.Hash, "n"
			instancetest.MarkRestarting(i)
			s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}, Revisions: []appsv1.ControllerRevision{*stored}, Lease: lease.NewState(lease.NewHolder(i), metav1.Unix(1800000000, 0).Time, 0)}
			for _, is := range c.is {
				is(scene{i, &s})
			}
			before := i.Spec.StopPod

			plan, err := MakePlan(g, s, r)

			require.NoError(t, err)
			assert.Equal(t, c.given, plan.Lease.Release, plan.Outcome.Message)
			require.Len(t, plan.Instances, 1)
			want := before
			if c.withdrawn {
				want = types.UID("")
			}
			assert.Equal(t, want, plan.Instances[0].Desired.Spec.StopPod)
			assert.Equal(t, c.given, plan.Instances[0].Desired.Annotations[v1alpha1.AnnotationDisruption] == "", "the mark stays as long as the Lease")
		})
	}
}

// P7: a stop that makes up for a configuration which was taken back half way may be taken
// back as well: what its member runs with is then looked at.
func TestAPodThatMayRunWithAnotherConfigurationSaysSo(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns"}}
	r := component.Rendering{Inputs: "one", Component: recovering{}}
	target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
	require.NoError(t, err)
	other := r
	other.Inputs, other.Template.Spec.NodeName = "two", "elsewhere"
	half, err := rollout.ResolveTarget(observation.Snapshot{}, other)
	require.NoError(t, err)
	live, err := component.NewInstance(g, other, half, 0)
	require.NoError(t, err)
	live.Spec.InPlaceFrom, live.Status.PodUID, live.Status.Revision = target.Hash, "pod", target.Hash

	m, err := compareInstance(planning.Inputs{Group: g, Rendering: r, Target: target}, live)

	require.NoError(t, err)
	assert.EqualValues(t, "pod", m.Wanted.Spec.StopPod)
	m.Wanted.Status.PodUID = "pod"
	assert.Equal(t, []string{half.Hash}, member.AppliedRevisions(m.Wanted))
	assert.True(t, member.MayRunOtherConfig(m.Wanted))
}
