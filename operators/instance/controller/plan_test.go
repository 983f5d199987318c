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
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// actions names what a plan would do.
func actions(p *plan) string {
	var out []string
	say := func(yes bool, what string) {
		if yes {
			out = append(out, what)
		}
	}
	say(p.addFinalizer, "+finalizer")
	say(len(p.withdraw) > 0, "withdraw")
	say(len(p.createClaims) > 0, "+claim")
	for _, c := range p.patchClaims {
		say(true, c.event)
	}
	say(len(p.deleteClaims) > 0, "-claim")
	say(p.createPod != nil, "+pod")
	say(p.patchPod != nil, "~pod")
	say(p.deletePod != nil, "-pod")
	say(p.removeFinalizer, "-finalizer")
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	failedPod := func(s *snapshot) {
		s.pod.Status.Phase, s.pod.Status.Reason, s.pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
	}
	turnedAway := func(ago time.Duration) func(*snapshot) {
		return func(s *snapshot) {
			s.now, s.pod.CreationTimestamp = clock(), metav1.NewTime(clock().Add(-ago))
			s.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "Pod was rejected: The node had condition: [DiskPressure]. "}
		}
	}
	otherClass := func(s *snapshot) { s.volumes[0].template.StorageClassName = ptr.To("slow") }
	unscheduled := func(s *snapshot) { s.pod.Spec.NodeName = "" }
	grown := func(s *snapshot) { s.volumes[0].template.Storage = resource.MustParse("2Gi") }
	shrunk := func(s *snapshot) { s.volumes[0].template.Storage = resource.MustParse("1Mi") }
	invalid := func(s *snapshot) { s.template, s.templateErr = nil, errors.New("unknown field") }
	unlabelled := func(s *snapshot) { s.volumes[0].claim.Labels = nil }
	strangersClaim := func(s *snapshot) { s.volumes[0].claim.Labels = map[string]string{v1alpha1.LabelManagedBy: "helm"} }
	unmarked := func(s *snapshot) { delete(s.volumes[0].claim.Annotations, v1alpha1.AnnotationMadeBy) }
	owned := func(s *snapshot) {
		s.volumes[0].claim.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "basic-pd", UID: "x"}}
	}
	forgetful := func(s *snapshot) { delete(s.pod.Annotations, v1alpha1.AnnotationTemplate) }
	unreadable := func(s *snapshot) { s.err = errors.New("timeout") }

	for name, c := range map[string]struct {
		world   []func(*snapshot)
		actions string
		reason  string
	}{
		"nothing is done when everything is as it should be":              {nil, "", ""},
		"the finalizer comes before anything, with the claim":             {[]func(*snapshot){finalizers(), noPod, noClaim, unrecorded}, "+finalizer +claim", v1alpha1.ReasonCreating},
		"a pod waits until its claim is recorded":                         {[]func(*snapshot){noPod, unrecorded}, "", v1alpha1.ReasonCreating},
		"a pod is made once its claim is recorded":                        {[]func(*snapshot){noPod}, "+pod", ""},
		"a pod is made on a pending claim, which may wait for it":         {[]func(*snapshot){noPod, pendingClaim}, "+pod", ""},
		"no pod is made when a claim is lost":                             {[]func(*snapshot){noPod, noClaim}, "", v1alpha1.ReasonClaimLost},
		"no pod is made when a claim is another one":                      {[]func(*snapshot){noPod, otherClaim}, "", v1alpha1.ReasonClaimLost},
		"a lost claim is made anew when that is wanted":                   {[]func(*snapshot){noPod, noClaim, recreate}, "+claim", v1alpha1.ReasonCreating},
		"another claim is recorded when that is wanted":                   {[]func(*snapshot){noPod, otherClaim, recreate}, "", v1alpha1.ReasonCreating},
		"a pod that runs without its claim is not touched":                {[]func(*snapshot){noClaim}, "", ""},
		"no pod is made on a retired claim":                               {[]func(*snapshot){noPod, retired}, "", v1alpha1.ReasonClaimRetired},
		"no pod is made on a claim that is being deleted":                 {[]func(*snapshot){noPod, terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"no pod is made on a claim of somebody else":                      {[]func(*snapshot){noPod, unrecorded, strangersClaim}, "", v1alpha1.ReasonClaimRejected},
		"a claim without labels is not adopted":                           {[]func(*snapshot){noPod, unrecorded, unlabelled}, "", v1alpha1.ReasonClaimRejected},
		"nor if a person means another Instance":                          {[]func(*snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-1")}, "", v1alpha1.ReasonClaimRejected},
		"it is if a person says so":                                       {[]func(*snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-0")}, "ClaimUpdated", v1alpha1.ReasonCreating},
		"but not while somebody owns it":                                  {[]func(*snapshot){noPod, unrecorded, unlabelled, adopted("basic-pd-0"), owned}, "", v1alpha1.ReasonClaimRejected},
		"our own that has lost its labels gets them back":                 {[]func(*snapshot){noPod, unlabelled}, "ClaimUpdated +pod", ""},
		"one of an older version without a mark is used":                  {[]func(*snapshot){noPod, unrecorded, unmarked}, "", v1alpha1.ReasonCreating},
		"one that is restored without labels gets them, and no pod":       {[]func(*snapshot){noPod, otherClaim, unlabelled}, "ClaimUpdated", v1alpha1.ReasonClaimLost},
		"one of somebody else gets none":                                  {[]func(*snapshot){noPod, otherClaim, strangersClaim}, "", v1alpha1.ReasonClaimRejected},
		"a claim that should be larger grows":                             {[]func(*snapshot){grown}, "ClaimUpdated", ""},
		"a claim never shrinks":                                           {[]func(*snapshot){shrunk}, "", ""},
		"a claim that has not grown as far asks for less again":           {[]func(*snapshot){asksFor("4Gi"), grown}, "ClaimUpdated", ""},
		"a claim does not ask for less than its volume has":               {[]func(*snapshot){asksFor("4Gi")}, "", ""},
		"a claim gets another VolumeAttributesClass":                      {[]func(*snapshot){attributes("gold", "", "")}, "ClaimUpdated", ""},
		"a VolumeAttributesClass that does not exist is waited for":       {[]func(*snapshot){attributes("gold", "", ""), classless}, "", ""},
		"one that the API server has dropped is not asked for again":      {[]func(*snapshot){attributes("gold", "", ""), dropped}, "", ""},
		"one that is asked for is not asked for again":                    {[]func(*snapshot){attributes("gold", "gold", "")}, "", ""},
		"one that never came is taken back":                               {[]func(*snapshot){attributes("", "gold", "")}, "ClaimUpdated", ""},
		"one that the volume has stays when none is named":                {[]func(*snapshot){attributes("", "gold", "gold")}, "", ""},
		"a claim without a volume keeps what it asks for":                 {[]func(*snapshot){attributes("gold", "", ""), pendingClaim}, "", ""},
		"the record of a never bound claim of another class goes first":   {[]func(*snapshot){pendingClaim, otherClass, unscheduled}, "withdraw", ""},
		"then the never bound claim goes":                                 {[]func(*snapshot){pendingClaim, otherClass, unscheduled, unrecorded}, "-claim", ""},
		"a bound claim of another class stays":                            {[]func(*snapshot){otherClass}, "", ""},
		"a pending claim stays while a node may use it":                   {[]func(*snapshot){pendingClaim, otherClass}, "", ""},
		"a new image restarts the pod":                                    {[]func(*snapshot){revised(image("pingcap/pd:v9"))}, "-pod", v1alpha1.ReasonRestartPending},
		"new labels do not restart the pod":                               {[]func(*snapshot){revised(label("team", "red"))}, "~pod", ""},
		"the same template under a new revision does not restart it":      {[]func(*snapshot){revised()}, "~pod", ""},
		"a template said in another way does not restart the pod":         {[]func(*snapshot){respelled(args("--join=x"))}, "~pod", ""},
		"a pod that has lost its template restarts for a new revision":    {[]func(*snapshot){forgetful, revised()}, "-pod", v1alpha1.ReasonRestartPending},
		"a pod that has lost its template gets it back":                   {[]func(*snapshot){forgetful}, "~pod", ""},
		"no restart while the claim is being deleted":                     {[]func(*snapshot){revised(image("x")), terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"no restart when the claim is lost":                               {[]func(*snapshot){revised(image("x")), noClaim}, "", v1alpha1.ReasonClaimLost},
		"a pod that is terminating is waited for":                         {[]func(*snapshot){terminatingPod, revised(image("x"))}, "", v1alpha1.ReasonPodTerminating},
		"an evicted pod is made anew":                                     {[]func(*snapshot){failedPod}, "-pod", v1alpha1.ReasonPodFailed},
		"a pod that its node has just turned away is not made anew yet":   {[]func(*snapshot){turnedAway(9 * time.Second)}, "", v1alpha1.ReasonPodFailed},
		"a pod that its node turned away is made anew after a while":      {[]func(*snapshot){turnedAway(turnedAwayPause)}, "-pod", v1alpha1.ReasonPodFailed},
		"a clock that is behind keeps no pod from being made anew":        {[]func(*snapshot){turnedAway(-time.Hour)}, "-pod", v1alpha1.ReasonPodFailed},
		"suspended, a pod that its node turned away is gone at once":      {[]func(*snapshot){turnedAway(0), suspended}, "-pod", v1alpha1.ReasonPodTerminating},
		"a pod of somebody else is not touched":                           {[]func(*snapshot){foreign, revised(image("x"))}, "", v1alpha1.ReasonPodOfAnotherOwner},
		"a pod of ours without owner is taken back":                       {[]func(*snapshot){ownerless}, "~pod", ""},
		"a suspended pod is stopped":                                      {[]func(*snapshot){suspended}, "-pod", v1alpha1.ReasonPodTerminating},
		"suspended and stopped is done":                                   {[]func(*snapshot){suspended, noPod}, "", ""},
		"a suspended pod runs on while its claim is being deleted":        {[]func(*snapshot){suspended, terminatingClaim}, "", v1alpha1.ReasonClaimTerminating},
		"paused, a restart is only told":                                  {[]func(*snapshot){paused, revised(image("x"))}, "", v1alpha1.ReasonRestartPending},
		"paused, no finalizer and no claim is made":                       {[]func(*snapshot){paused, finalizers(), noPod, noClaim, unrecorded}, "", v1alpha1.ReasonCreating},
		"an invalid template touches nothing":                             {[]func(*snapshot){invalid, noPod}, "", v1alpha1.ReasonInvalidSpec},
		"what could not be read touches nothing":                          {[]func(*snapshot){unreadable, noPod}, "", v1alpha1.ReasonRequestFailed},
		"deleted, the member is drained first":                            {[]func(*snapshot){deleting, member}, "", v1alpha1.ReasonDeleting},
		"draining, a pod that went away comes back":                       {[]func(*snapshot){deleting, member, noPod}, "+pod", v1alpha1.ReasonDeleting},
		"draining in a foreground deletion, the pod stays away":           {[]func(*snapshot){deleting, finalizers(v1alpha1.FinalizerInstance, v1alpha1.FinalizerMember, metav1.FinalizerDeleteDependents), noPod}, "", v1alpha1.ReasonDeleting},
		"deleted, the pod goes":                                           {[]func(*snapshot){deleting}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted, the pod is waited for":                                  {[]func(*snapshot){deleting, terminatingPod}, "", v1alpha1.ReasonPodTerminating},
		"deleted, claims are retained":                                    {[]func(*snapshot){deleting, noPod}, "-finalizer", ""},
		"deleted, claims go when that is wanted":                          {[]func(*snapshot){deleting, noPod, deleteClaims}, "-claim -finalizer", ""},
		"deleted, one without a mark goes if its pod was started with it": {[]func(*snapshot){deleting, noPod, deleteClaims, unmarked}, "-claim -finalizer", ""},
		"else it stays":                                            {[]func(*snapshot){deleting, noPod, deleteClaims, unmarked, unrecorded}, "-finalizer", ""},
		"deleted, an adopted claim never goes":                     {[]func(*snapshot){deleting, noPod, deleteClaims, adopted("basic-pd-0")}, "-finalizer", ""},
		"nor does it after a scale-in":                             {[]func(*snapshot){deleting, noPod, deleteClaims, adopted("basic-pd-0"), drained, retire}, "ClaimRetired -finalizer", ""},
		"a never bound claim without a mark is left alone":         {[]func(*snapshot){pendingClaim, otherClass, unscheduled, unmarked}, "", ""},
		"deleted, a claim of somebody else never goes":             {[]func(*snapshot){deleting, noPod, deleteClaims, strangersClaim}, "-finalizer", ""},
		"deleted, a claim that no pod of it has used never goes":   {[]func(*snapshot){deleting, noPod, deleteClaims, otherClaim}, "-finalizer", ""},
		"but is retired when the member has left":                  {[]func(*snapshot){deleting, noPod, deleteClaims, otherClaim, drained}, "ClaimRetired -finalizer", ""},
		"deleted, a retired claim never goes":                      {[]func(*snapshot){deleting, noPod, deleteClaims, retired}, "-finalizer", ""},
		"deleted after a scale-in, claims are retired":             {[]func(*snapshot){deleting, noPod, retire}, "ClaimRetired -finalizer", ""},
		"deleted after it was drained, claims are retired":         {[]func(*snapshot){deleting, noPod, drained}, "ClaimRetired -finalizer", ""},
		"deleted while paused, it goes":                            {[]func(*snapshot){deleting, paused}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted while suspended, it goes":                         {[]func(*snapshot){deleting, suspended, noPod}, "-finalizer", ""},
		"deleted with an invalid template, it goes":                {[]func(*snapshot){deleting, invalid}, "-pod", v1alpha1.ReasonPodTerminating},
		"deleted with a claim lost, it goes":                       {[]func(*snapshot){deleting, noPod, noClaim}, "-finalizer", ""},
		"deleted beside a pod of somebody else, it goes":           {[]func(*snapshot){deleting, foreign}, "-finalizer", ""},
		"deleted with --cascade=orphan, the pod is released first": {[]func(*snapshot){deleting, finalizers(v1alpha1.FinalizerInstance, metav1.FinalizerOrphanDependents)}, "", v1alpha1.ReasonDeleting},
		"deleted with --cascade=orphan, pod and claims stay":       {[]func(*snapshot){deleting, ownerless, deleteClaims}, "-finalizer", ""},
		"deleted without our finalizer, nothing is left to do":     {[]func(*snapshot){deleting, finalizers("x")}, "", v1alpha1.ReasonDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			p := makePlan(world(t, c.world...))
			assert.Equal(t, c.actions, actions(p))
			assert.Equal(t, c.reason, p.outcome.Reason, p.outcome.Message)
			if p.outcome.Kind == step.KindWait || p.outcome.Kind == step.KindAfter || p.outcome.Kind == step.KindStall {
				assert.NotZero(t, p.outcome.After, "no wait without deadline")
			}
		})
	}
}

func TestRestartNamesTheFirstDifference(t *testing.T) {
	p := makePlan(world(t, revised(image("pingcap/pd:v9"))))
	assert.Contains(t, p.deletePod.why, "spec.containers[pd].image: pingcap/pd:v8.5.7 → pingcap/pd:v9")
	assert.NotNil(t, p.deletePod.next)
}

func TestInPlaceChangesTakeAwayOnlyWhatATemplateBrought(t *testing.T) {
	s := world(t, revised(func(t *corev1.PodTemplateSpec) {
		t.Labels = map[string]string{"team": "red"}
		t.Annotations = nil
	}))
	s.pod.Labels["by-a-person"] = "stays"
	p := makePlan(s)
	metadata, ok := p.patchPod.body["metadata"].(map[string]any)
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
func TestLabelsChangeInPlaceAfterATemplateWasSaidInAnotherWay(t *testing.T) {
	s := world(t, respelled(args("--join=x")))
	p := makePlan(s)
	metadata, ok := p.patchPod.body["metadata"].(map[string]any)
	assert.True(t, ok)
	annotations, ok := metadata["annotations"].(map[string]any)
	assert.True(t, ok)
	text, ok := annotations[v1alpha1.AnnotationTemplate].(string)
	assert.True(t, ok)
	s.pod.Annotations[v1alpha1.AnnotationTemplate] = text
	assert.Empty(t, actions(makePlan(s)), "it is done once")

	revised(args("--join=x"), label("team", "red"))(s)
	assert.Equal(t, "~pod", actions(makePlan(s)))
}

// KV-25: the running member has what differs, so the pod stays and is called by the
// new revision; it remembers which one it was made from.
func TestAPodIsBroughtToARevisionWithoutBeingMadeAnew(t *testing.T) {
	s := world(t, revised(args("--config=another")))
	assert.Equal(t, "-pod", actions(makePlan(s)), "the difference needs a restart")
	s.instance.Spec.InPlaceFrom = s.pod.Labels[v1alpha1.LabelRevision]
	p := makePlan(s)
	assert.Equal(t, "~pod", actions(p))
	metadata, ok := p.patchPod.body["metadata"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, map[string]any{v1alpha1.LabelRevision: "r2"}, metadata["labels"])
	annotations, ok := metadata["annotations"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, "r1", annotations[v1alpha1.AnnotationMadeFrom])
	found := report(s, p, step.Done(), clock())
	assert.Equal(t, "r2", found.after.Revision)
	assert.Equal(t, "r1", found.after.MadeFrom)

	// So it is after the patch, and nothing is left to do.
	s.pod.Labels[v1alpha1.LabelRevision] = "r2"
	s.pod.Annotations[v1alpha1.AnnotationMadeFrom] = "r1"
	text, ok := annotations[v1alpha1.AnnotationTemplate].(string)
	require.True(t, ok)
	s.pod.Annotations[v1alpha1.AnnotationTemplate] = text
	assert.Empty(t, actions(makePlan(s)))

	// Back at the revision that it was made from it has nothing to remember.
	s.instance.Spec.Revision, s.instance.Spec.InPlaceFrom = "r1", "r2"
	p = makePlan(s)
	assert.Equal(t, "~pod", actions(p))
	assert.Empty(t, report(s, p, step.Done(), clock()).after.MadeFrom)

	// Any other revision is compared.
	s.instance.Spec.Revision, s.instance.Spec.InPlaceFrom = "r3", "r0"
	revised(args("--config=a-third"))(s)
	s.instance.Spec.Revision = "r3"
	assert.Equal(t, "-pod", actions(makePlan(s)))
}

func TestAPodThatWasReadyAnewUnseenIsReadySinceThen(t *testing.T) {
	s := world(t)
	before := report(s, makePlan(s), step.Done(), clock())
	s.instance.Status.Conditions = before.after.Conditions
	later := metav1.NewTime(clock().Add(time.Minute))
	for n := range s.pod.Status.Conditions {
		if s.pod.Status.Conditions[n].Type == corev1.PodReady {
			s.pod.Status.Conditions[n].LastTransitionTime = later
		}
	}
	after := report(s, makePlan(s), step.Done(), clock().Add(time.Hour))
	ready := meta.FindStatusCondition(after.after.Conditions, v1alpha1.ConditionPodReady)
	assert.Equal(t, later, ready.LastTransitionTime)
	s.instance.Status.Conditions = after.after.Conditions
	assert.Equal(t, after.after.Conditions, report(s, makePlan(s), step.Done(), clock().Add(2*time.Hour)).after.Conditions, "it changes once")
}
