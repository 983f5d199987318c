package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// actions names what a plan would do.
func actions(p *planning.Plan) string {
	var out []string
	say := func(yes bool, what string) {
		if yes {
			out = append(out, what)
		}
	}
	say(p.AddFinalizer, "+finalizer")
	say(len(p.Withdraw) > 0, "withdraw")
	say(len(p.CreateClaims) > 0, "+claim")
	for _, c := range p.PatchClaims {
		say(true, c.Event)
	}
	say(len(p.DeleteClaims) > 0, "-claim")
	say(p.CreatePod != nil, "+pod")
	say(p.PatchPod != nil, "~pod")
	say(p.DeletePod != nil, "-pod")
	say(p.RemoveFinalizer, "-finalizer")
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	failedPod := func(s *observation.Snapshot) {
		s.Pod.Status.Phase, s.Pod.Status.Reason, s.Pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
	}
	turnedAway := func(ago time.Duration) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			s.Now, s.Pod.CreationTimestamp = clock(), metav1.NewTime(clock().Add(-ago))
			s.Pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "Pod was rejected: The node had condition: [DiskPressure]. "}
		}
	}
	otherClass := func(s *observation.Snapshot) { s.Volumes[0].Template.StorageClassName = ptr.To("slow") }
	unscheduled := func(s *observation.Snapshot) { s.Pod.Spec.NodeName = "" }
	grown := func(s *observation.Snapshot) { s.Volumes[0].Template.Storage = resource.MustParse("2Gi") }
	shrunk := func(s *observation.Snapshot) { s.Volumes[0].Template.Storage = resource.MustParse("1Mi") }
	invalid := func(s *observation.Snapshot) { s.Template, s.TemplateErr = nil, errors.New("unknown field") }
	unlabelled := func(s *observation.Snapshot) { s.Volumes[0].Claim.Labels = nil }
	strangersClaim := func(s *observation.Snapshot) {
		s.Volumes[0].Claim.Labels = map[string]string{v1alpha1.LabelManagedBy: "helm"}
	}
	unmarked := func(s *observation.Snapshot) { delete(s.Volumes[0].Claim.Annotations, v1alpha1.AnnotationMadeBy) }
	owned := func(s *observation.Snapshot) {
		s.Volumes[0].Claim.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "basic-pd", UID: "x"}}
	}
	forgetful := func(s *observation.Snapshot) { delete(s.Pod.Annotations, v1alpha1.AnnotationTemplate) }
	unreadable := func(s *observation.Snapshot) { s.Err = errors.New("timeout") }

	for name, c := range map[string]struct {
		world   []func(*observation.Snapshot)
		actions string
		reason  string
	}{
		"nothing is done when everything is as it should be":              {nil, "", ""},
		"the finalizer comes before anything, with the claim":             {[]func(*observation.Snapshot){finalizers(), noPod, noClaim, unrecorded}, "+finalizer +claim", v1alpha1.ReasonCreating},
		"a pod waits until its claim is recorded":                         {[]func(*observation.Snapshot){noPod, unrecorded}, "", v1alpha1.ReasonCreating},
		"a pod is made once its claim is recorded":                        {[]func(*observation.Snapshot){noPod}, "+pod", ""},
		"a pod is made on a pending claim, which may wait for it":         {[]func(*observation.Snapshot){noPod, pendingClaim}, "+pod", ""},
		"no pod is made when a claim is lost":                             {[]func(*observation.Snapshot){noPod, noClaim}, "", v1alpha1.ReasonClaimLost},
		"no pod is made when a claim is another one":                      {[]func(*observation.Snapshot){noPod, otherClaim}, "", v1alpha1.ReasonClaimLost},
		"a lost claim is recreated when that is wanted":                   {[]func(*observation.Snapshot){noPod, noClaim, recreate}, "+claim", v1alpha1.ReasonCreating},
		"another claim is recorded when that is wanted":                   {[]func(*observation.Snapshot){noPod, otherClaim, recreate}, "", v1alpha1.ReasonCreating},
		"a pod that runs without its claim is not touched":                {[]func(*observation.Snapshot){noClaim}, "", ""},
		"no pod is made on a retired claim":                               {[]func(*observation.Snapshot){noPod, retired}, "", v1alpha1.ReasonClaimRetired},
		"no pod is made on a claim that is being deleted":                 {[]func(*observation.Snapshot){noPod, terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"no pod is made on a claim of another owner":                      {[]func(*observation.Snapshot){noPod, unrecorded, strangersClaim}, "", v1alpha1.ReasonClaimRejected},
		"a claim without labels is not adopted":                           {[]func(*observation.Snapshot){noPod, unrecorded, unlabelled}, "", v1alpha1.ReasonClaimRejected},
		"nor if a user means another Instance":                            {[]func(*observation.Snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-1")}, "", v1alpha1.ReasonClaimRejected},
		"it is if a user says so":                                         {[]func(*observation.Snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-0")}, "ClaimUpdated", v1alpha1.ReasonCreating},
		"but not while it has another owner":                              {[]func(*observation.Snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-0"), owned}, "", v1alpha1.ReasonClaimRejected},
		"our own that has lost its labels gets them back":                 {[]func(*observation.Snapshot){noPod, unlabelled}, "ClaimUpdated +pod", ""},
		"one of an older version without a mark is used":                  {[]func(*observation.Snapshot){noPod, unrecorded, unmarked}, "", v1alpha1.ReasonCreating},
		"one that is restored without labels gets them, and no pod":       {[]func(*observation.Snapshot){noPod, otherClaim, unlabelled}, "ClaimUpdated", v1alpha1.ReasonClaimLost},
		"one of another owner gets none":                                  {[]func(*observation.Snapshot){noPod, otherClaim, strangersClaim}, "", v1alpha1.ReasonClaimRejected},
		"a claim that should be larger grows":                             {[]func(*observation.Snapshot){grown}, "ClaimUpdated", ""},
		"a claim never shrinks":                                           {[]func(*observation.Snapshot){shrunk}, "", ""},
		"a claim that has not grown as far asks for less again":           {[]func(*observation.Snapshot){asksFor("4Gi"), grown}, "ClaimUpdated", ""},
		"a claim does not ask for less than its volume has":               {[]func(*observation.Snapshot){asksFor("4Gi")}, "", ""},
		"a claim gets another VolumeAttributesClass":                      {[]func(*observation.Snapshot){attributes("gold", "", "")}, "ClaimUpdated", ""},
		"a VolumeAttributesClass that does not exist is waited for":       {[]func(*observation.Snapshot){attributes("gold", "", ""), classless}, "", ""},
		"one that the API server has dropped is not asked for again":      {[]func(*observation.Snapshot){attributes("gold", "", ""), dropped}, "", ""},
		"one that is asked for is not asked for again":                    {[]func(*observation.Snapshot){attributes("gold", "gold", "")}, "", ""},
		"one that never came is taken back":                               {[]func(*observation.Snapshot){attributes("", "gold", "")}, "ClaimUpdated", ""},
		"one that the volume has stays when none is named":                {[]func(*observation.Snapshot){attributes("", "gold", "gold")}, "", ""},
		"a claim without a volume keeps what it asks for":                 {[]func(*observation.Snapshot){attributes("gold", "", ""), pendingClaim}, "", ""},
		"the record of a never bound claim of another class goes first":   {[]func(*observation.Snapshot){pendingClaim, otherClass, unscheduled}, "withdraw", ""},
		"then the never bound claim goes":                                 {[]func(*observation.Snapshot){pendingClaim, otherClass, unscheduled, unrecorded}, "-claim", ""},
		"so does that of one of another size":                             {[]func(*observation.Snapshot){pendingClaim, grown, unscheduled}, "withdraw", ""},
		"and then such a claim":                                           {[]func(*observation.Snapshot){pendingClaim, grown, noPod, unrecorded}, "-claim", v1alpha1.ReasonCreating},
		"a bound claim of another class stays":                            {[]func(*observation.Snapshot){otherClass}, "", ""},
		"a pending claim stays while a node may use it":                   {[]func(*observation.Snapshot){pendingClaim, otherClass}, "", ""},
		"a new image restarts the pod":                                    {[]func(*observation.Snapshot){revised(image("pingcap/pd:v9"))}, "-pod", v1alpha1.ReasonRestartPending},
		"new labels do not restart the pod":                               {[]func(*observation.Snapshot){revised(label("team", "red"))}, "~pod", ""},
		"the same template under a new revision does not restart it":      {[]func(*observation.Snapshot){revised()}, "~pod", ""},
		"a template said in another way does not restart the pod":         {[]func(*observation.Snapshot){respelled(args("--join=x"))}, "~pod", ""},
		"a pod that has lost its template restarts for a new revision":    {[]func(*observation.Snapshot){forgetful, revised()}, "-pod", v1alpha1.ReasonRestartPending},
		"a pod that has lost its template gets it back":                   {[]func(*observation.Snapshot){forgetful}, "~pod", ""},
		"no restart while the claim is being deleted":                     {[]func(*observation.Snapshot){revised(image("x")), terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"no restart when the claim is lost":                               {[]func(*observation.Snapshot){revised(image("x")), noClaim}, "", v1alpha1.ReasonClaimLost},
		"a pod that is terminating is waited for":                         {[]func(*observation.Snapshot){terminatingPod, revised(image("x"))}, "", v1alpha1.ReasonPodTerminating},
		"an evicted pod is recreated":                                     {[]func(*observation.Snapshot){failedPod}, "-pod", v1alpha1.ReasonPodFailed},
		"a pod that its node has just turned away is not recreated yet":   {[]func(*observation.Snapshot){turnedAway(9 * time.Second)}, "", v1alpha1.ReasonPodFailed},
		"a pod that its node turned away is recreated after a while":      {[]func(*observation.Snapshot){turnedAway(turnedAwayPause)}, "-pod", v1alpha1.ReasonPodFailed},
		"a clock that is behind keeps no pod from being recreated":        {[]func(*observation.Snapshot){turnedAway(-time.Hour)}, "-pod", v1alpha1.ReasonPodFailed},
		"suspended, a pod that its node turned away is gone at once":      {[]func(*observation.Snapshot){turnedAway(0), suspended}, "-pod", v1alpha1.ReasonPodTerminating},
		"a pod of another owner is not touched":                           {[]func(*observation.Snapshot){foreign, revised(image("x"))}, "", v1alpha1.ReasonPodOfAnotherOwner},
		"a pod of ours without owner is taken back":                       {[]func(*observation.Snapshot){ownerless}, "~pod", ""},
		"a suspended pod is stopped":                                      {[]func(*observation.Snapshot){suspended}, "-pod", v1alpha1.ReasonPodTerminating},
		"suspended and stopped is done":                                   {[]func(*observation.Snapshot){suspended, noPod}, "", ""},
		"a suspended pod runs on while its claim is being deleted":        {[]func(*observation.Snapshot){suspended, terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"paused, a restart is only told":                                  {[]func(*observation.Snapshot){paused, revised(image("x"))}, "", v1alpha1.ReasonRestartPending},
		"paused, no finalizer and no claim is made":                       {[]func(*observation.Snapshot){paused, finalizers(), noPod, noClaim, unrecorded}, "", v1alpha1.ReasonCreating},
		"an invalid template touches nothing":                             {[]func(*observation.Snapshot){invalid, noPod}, "", v1alpha1.ReasonInvalidSpec},
		"what could not be read touches nothing":                          {[]func(*observation.Snapshot){unreadable, noPod}, "", v1alpha1.ReasonRequestFailed},
		"deleted, the member is drained first":                            {[]func(*observation.Snapshot){deleting, member}, "", v1alpha1.ReasonDeleting},
		"draining, a pod that went away comes back":                       {[]func(*observation.Snapshot){deleting, member, noPod}, "+pod", v1alpha1.ReasonDeleting},
		"draining in a foreground deletion, the pod stays away":           {[]func(*observation.Snapshot){deleting, finalizers(v1alpha1.FinalizerInstance, v1alpha1.FinalizerMember, metav1.FinalizerDeleteDependents), noPod}, "", v1alpha1.ReasonDeleting},
		"deleted, the pod goes":                                           {[]func(*observation.Snapshot){deleting}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted, the pod is waited for":                                  {[]func(*observation.Snapshot){deleting, terminatingPod}, "", v1alpha1.ReasonPodTerminating},
		"deleted, claims are retained":                                    {[]func(*observation.Snapshot){deleting, noPod}, "-finalizer", ""},
		"deleted, claims go when that is wanted":                          {[]func(*observation.Snapshot){deleting, noPod, deleteClaims}, "-claim -finalizer", ""},
		"deleted, one without a mark goes if its pod was started with it": {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, unmarked}, "-claim -finalizer", ""},
		"else it stays":                                            {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, unmarked, unrecorded}, "-finalizer", ""},
		"deleted, an adopted claim never goes":                     {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, adopted("basic-pd-0")}, "-finalizer", ""},
		"nor does it after a scale-in":                             {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, adopted("basic-pd-0"), drained, retire}, "ClaimRetired -finalizer", ""},
		"a never bound claim without a mark is left alone":         {[]func(*observation.Snapshot){pendingClaim, otherClass, unscheduled, unmarked}, "", ""},
		"deleted, a claim of another owner never goes":             {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, strangersClaim}, "-finalizer", ""},
		"deleted, a claim that no pod of it has used never goes":   {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, otherClaim}, "-finalizer", ""},
		"but is retired when the member has left":                  {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, otherClaim, drained}, "ClaimRetired -finalizer", ""},
		"deleted, a retired claim never goes":                      {[]func(*observation.Snapshot){deleting, noPod, deleteClaims, retired}, "-finalizer", ""},
		"deleted after a scale-in, claims are retired":             {[]func(*observation.Snapshot){deleting, noPod, retire}, "ClaimRetired -finalizer", ""},
		"deleted after it was drained, claims are retired":         {[]func(*observation.Snapshot){deleting, noPod, drained}, "ClaimRetired -finalizer", ""},
		"deleted while paused, it goes":                            {[]func(*observation.Snapshot){deleting, paused}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted while suspended, it goes":                         {[]func(*observation.Snapshot){deleting, suspended, noPod}, "-finalizer", ""},
		"deleted with an invalid template, it goes":                {[]func(*observation.Snapshot){deleting, invalid}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted with a claim lost, it goes":                       {[]func(*observation.Snapshot){deleting, noPod, noClaim}, "-finalizer", ""},
		"deleted beside a pod of another owner, it goes":           {[]func(*observation.Snapshot){deleting, foreign}, "-finalizer", ""},
		"deleted with --cascade=orphan, the pod is released first": {[]func(*observation.Snapshot){deleting, finalizers(v1alpha1.FinalizerInstance, metav1.FinalizerOrphanDependents)}, "", v1alpha1.ReasonDeleting},
		"deleted with --cascade=orphan, pod and claims stay":       {[]func(*observation.Snapshot){deleting, ownerless, deleteClaims}, "-finalizer", ""},
		"deleted without our finalizer, nothing is left to do":     {[]func(*observation.Snapshot){deleting, finalizers("x")}, "", v1alpha1.ReasonDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			p := makePlan(world(t, c.world...))
			assert.Equal(t, c.actions, actions(p))
			assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			if p.Outcome.Kind == step.KindWait || p.Outcome.Kind == step.KindAfter || p.Outcome.Kind == step.KindStall {
				assert.NotZero(t, p.Outcome.After, "no wait without deadline")
			}
		})
	}
}

func TestRestartNamesTheFirstDifference(t *testing.T) {
	p := makePlan(world(t, revised(image("pingcap/pd:v9"))))
	assert.Contains(t, p.DeletePod.Why, "spec.containers[pd].image: pingcap/pd:v8.5.7 → pingcap/pd:v9")
	assert.NotNil(t, p.DeletePod.Next)
}

func TestInPlaceChangesTakeAwayOnlyWhatATemplateBrought(t *testing.T) {
	s := world(t, revised(func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"team": "red"}
		t.Annotations = nil
	}))
	s.Pod.Labels["by-a-person"] = "stays"
	p := makePlan(s)
	metadata, ok := p.PatchPod.Body["metadata"].(map[string]any)
	assert.True(t, ok)
	assert.Equal(t, map[string]any{"team": "red", "app.kubernetes.io/component": nil, v1alpha1.LabelRevision: "r2"}, metadata["labels"])
	annotations, ok := metadata["annotations"].(map[string]any)
	assert.True(t, ok)
	assert.Contains(t, annotations, "note")
	assert.Nil(t, annotations["note"])
	assert.Contains(t, annotations, v1alpha1.AnnotationTemplate)
	assert.Equal(t, "pod-uid", metadata["uid"])
}

// A group's operator may say the same revision in another way (PD's
// --initial-cluster becomes --join). A later change of labels must not bring
// that difference up as a reason to restart.
func TestLabelsChangeInPlaceAfterAnEquivalentTemplate(t *testing.T) {
	s := world(t, respelled(args("--join=x")))
	p := makePlan(s)
	metadata, ok := p.PatchPod.Body["metadata"].(map[string]any)
	assert.True(t, ok)
	annotations, ok := metadata["annotations"].(map[string]any)
	assert.True(t, ok)
	text, ok := annotations[v1alpha1.AnnotationTemplate].(string)
	assert.True(t, ok)
	s.Pod.Annotations[v1alpha1.AnnotationTemplate] = text
	assert.Empty(t, actions(makePlan(s)), "it is done once")

	revised(args("--join=x"), label("team", "red"))(s)
	assert.Equal(t, "~pod", actions(makePlan(s)))
}

// KV-25: the running member has what differs, so the pod stays and is called by the
// new revision; it remembers which one it was made from.
func TestAPodIsBroughtToARevisionWithoutBeingRecreated(t *testing.T) {
	s := world(t, revised(args("--config=another")))
	assert.Equal(t, "-pod", actions(makePlan(s)), "the difference needs a restart")
	s.Instance.Spec.InPlaceFrom = s.Pod.Labels[v1alpha1.LabelRevision]
	p := makePlan(s)
	assert.Equal(t, "~pod", actions(p))
	metadata, ok := p.PatchPod.Body["metadata"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, map[string]any{v1alpha1.LabelRevision: "r2"}, metadata["labels"])
	annotations, ok := metadata["annotations"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, "r1", annotations[v1alpha1.AnnotationMadeFrom])
	found := reportStatus(s, p, step.Done(), clock())
	assert.Equal(t, "r2", found.after.Revision)
	assert.Equal(t, "r1", found.after.MadeFrom)

	// So it is after the patch, and nothing is left to do.
	s.Pod.Labels[v1alpha1.LabelRevision] = "r2"
	s.Pod.Annotations[v1alpha1.AnnotationMadeFrom] = "r1"
	text, ok := annotations[v1alpha1.AnnotationTemplate].(string)
	require.True(t, ok)
	s.Pod.Annotations[v1alpha1.AnnotationTemplate] = text
	assert.Empty(t, actions(makePlan(s)))

	// Back at the revision that it was made from it has nothing to remember.
	s.Instance.Spec.Revision, s.Instance.Spec.InPlaceFrom = "r1", "r2"
	p = makePlan(s)
	assert.Equal(t, "~pod", actions(p))
	assert.Empty(t, reportStatus(s, p, step.Done(), clock()).after.MadeFrom)

	// Any other revision is compared.
	s.Instance.Spec.Revision, s.Instance.Spec.InPlaceFrom = "r3", "r0"
	revised(args("--config=a-third"))(s)
	s.Instance.Spec.Revision = "r3"
	assert.Equal(t, "-pod", actions(makePlan(s)))
}

// Whatever counts for how long a member has not been ready does so from when it was resumed.
func TestAPodThatWasSuspendedIsNotReadySinceItIsResumed(t *testing.T) {
	s := world(t)
	s.Pod, s.Instance.Spec.Suspended = nil, true
	s.Instance.Status.Conditions = reportStatus(s, makePlan(s), step.Done(), clock()).after.Conditions
	s.Instance.Status.PodUID = ""
	later := clock().Add(time.Hour)
	s.Instance.Spec.Suspended = false
	resumed := reportStatus(s, makePlan(s), step.Done(), later).after.Conditions
	assert.Equal(t, later, meta.FindStatusCondition(resumed, v1alpha1.ConditionReady).LastTransitionTime.Time)
	s.Instance.Status.Conditions = resumed
	assert.Equal(t, resumed, reportStatus(s, makePlan(s), step.Done(), later.Add(time.Hour)).after.Conditions, "it changes once")
}

func TestAPodThatWasReadyAgainUnseenIsReadySinceThen(t *testing.T) {
	s := world(t)
	before := reportStatus(s, makePlan(s), step.Done(), clock())
	s.Instance.Status.Conditions = before.after.Conditions
	later := metav1.NewTime(clock().Add(time.Minute))
	for n := range s.Pod.Status.Conditions {
		if s.Pod.Status.Conditions[n].Type == corev1.PodReady {
			s.Pod.Status.Conditions[n].LastTransitionTime = later
		}
	}
	after := reportStatus(s, makePlan(s), step.Done(), clock().Add(time.Hour))
	ready := meta.FindStatusCondition(after.after.Conditions, v1alpha1.ConditionPodReady)
	assert.Equal(t, later, ready.LastTransitionTime)
	s.Instance.Status.Conditions = after.after.Conditions
	assert.Equal(t, after.after.Conditions, reportStatus(s, makePlan(s), step.Done(), clock().Add(2*time.Hour)).after.Conditions, "it changes once")
}

// The clock of a node may be wrong by hours: others would wait as long for what is ready since then.
func TestAPodIsNotReadySinceATimeThatIsToCome(t *testing.T) {
	for name, c := range map[string]struct{ ahead, want time.Duration }{
		"a clock that is a little ahead": {10 * time.Second, 10 * time.Second},
		"a clock that is hours ahead":    {3 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t)
			s.Instance.Status.Conditions = nil
			for n := range s.Pod.Status.Conditions {
				s.Pod.Status.Conditions[n].LastTransitionTime = metav1.NewTime(clock().Add(c.ahead))
			}
			first := reportStatus(s, makePlan(s), step.Done(), clock()).after.Conditions
			assert.Equal(t, clock().Add(c.want), meta.FindStatusCondition(first, v1alpha1.ConditionPodReady).LastTransitionTime.Time)
			s.Instance.Status.Conditions = first
			assert.Equal(t, first, reportStatus(s, makePlan(s), step.Done(), clock().Add(time.Minute)).after.Conditions, "it changes once")
		})
	}
}
