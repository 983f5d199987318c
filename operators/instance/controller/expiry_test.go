package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/expiry"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// P3: every claim that could be met is kept but the one that says in full that it
// goes.
func TestAClaimExpiresOnlyIfEverythingSaysSo(t *testing.T) {
	times := map[string]string{"none": "", "past": clock().Add(-time.Second).Format(time.RFC3339), "now": clock().Format(time.RFC3339), "future": clock().Add(time.Hour).Format(time.RFC3339), "garbled": "tomorrow"}
	deleted := 0
	for name, at := range times {
		for _, managed := range []string{"", "helm", v1alpha1.ManagedBy} {
			for _, instance := range []string{"", "a-0"} {
				for _, retired := range []string{"", "it was removed"} {
					for _, going := range []bool{false, true} {
						claim := &corev1.PersistentVolumeClaim{}
						claim.Name, claim.UID = "data-a-0", "this"
						claim.Labels = map[string]string{v1alpha1.LabelManagedBy: managed, v1alpha1.LabelInstance: instance, v1alpha1.LabelVolume: "data"}
						claim.Annotations = map[string]string{v1alpha1.AnnotationRetired: retired, v1alpha1.AnnotationExpires: at, v1alpha1.AnnotationMadeBy: "i", v1alpha1.AnnotationExpiresClaim: "this 1h"}
						if going {
							claim.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
						}
						whole := managed == v1alpha1.ManagedBy && instance != "" && retired != "" && !going
						what, left := expiry.Decide(claim, clock())
						assert.Equal(t, whole && (name == "past" || name == "now"), what == expiry.Delete, "%s %s %s %s %t", name, managed, instance, retired, going)
						assert.Equal(t, whole && name == "future", what == expiry.KeepForNow && left == time.Hour)
						assert.Equal(t, what == expiry.KeepForNow, left > 0, "what stays for good is not looked at again")
						when, ever := expiry.Expires(claim)
						assert.Equal(t, what != expiry.Keep, ever, "what metrics tell is what happens")
						assert.True(t, !ever || when.Format(time.RFC3339) == at)
						if what == expiry.Delete {
							deleted++
						}
					}
				}
			}
		}
	}
	assert.Equal(t, 2, deleted)
}

// S M1: a claim that was restored with the annotations of the one that was retired
// begins its time again, and what no operator has made never expires.
func TestOnlyTheClaimThatWasRetiredExpiresAtItsTime(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		what   expiry.Decision
		left   time.Duration
	}{
		"the one that was retired":           {func(*corev1.PersistentVolumeClaim) {}, expiry.Delete, 0},
		"one that was restored, for as long": {func(c *corev1.PersistentVolumeClaim) { c.UID = "restored" }, expiry.KeepForNow, 7*day - time.Hour},
		"and then it goes": {func(c *corev1.PersistentVolumeClaim) {
			c.UID, c.CreationTimestamp = "restored", metav1.NewTime(clock().Add(-8*day))
		}, expiry.Delete, 0},
		"a copy of it under another name": {func(c *corev1.PersistentVolumeClaim) {
			c.Name, c.UID, c.CreationTimestamp = "data-a-0-backup", "copy", metav1.NewTime(clock().Add(-8*day))
		}, expiry.Keep, 0},
		"with an unreadable time": {func(c *corev1.PersistentVolumeClaim) {
			c.UID = "restored"
			c.Annotations[v1alpha1.AnnotationExpiresClaim] = "this soon"
		}, expiry.Keep, 0},
		"restored with a time of an older version": {func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationExpiresClaim) }, expiry.Keep, 0},
		"with a time that a user has written": {func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, v1alpha1.AnnotationExpiresClaim)
			c.CreationTimestamp = metav1.NewTime(clock().Add(-9 * day))
		}, expiry.Delete, 0},
		"one that no operator has made": {func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationMadeBy) }, expiry.Keep, 0},
		"one that was adopted":          {func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationAdopt] = "a-0" }, expiry.Keep, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Name, claim.UID, claim.CreationTimestamp = "data-a-0", "this", metav1.NewTime(clock().Add(-time.Hour))
			claim.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelInstance: "a-0", v1alpha1.LabelVolume: "data"}
			claim.Annotations = map[string]string{
				v1alpha1.AnnotationRetired: "it was removed", v1alpha1.AnnotationMadeBy: "i",
				v1alpha1.AnnotationExpires: clock().Add(-day).Format(time.RFC3339), v1alpha1.AnnotationExpiresClaim: "this 168h0m0s",
			}
			c.change(claim)
			what, left := expiry.Decide(claim, clock())
			assert.Equal(t, c.what, what)
			assert.Equal(t, c.left, left)
		})
	}
}

func TestARetiredClaimSaysWhenItExpires(t *testing.T) {
	week := func(s *observation.Snapshot) {
		s.Now, s.Instance.Spec.ClaimRetention.RetainFor = clock(), &metav1.Duration{Duration: 168 * time.Hour}
	}
	for name, c := range map[string]struct {
		world []func(*observation.Snapshot)
		want  any
	}{
		"when its member has left":               {[]func(*observation.Snapshot){deleting, noPod, drained, week}, clock().Add(168 * time.Hour).Format(time.RFC3339)},
		"after a scale-in":                       {[]func(*observation.Snapshot){deleting, noPod, retire, week}, clock().Add(168 * time.Hour).Format(time.RFC3339)},
		"never, if the spec sets no time":        {[]func(*observation.Snapshot){deleting, noPod, drained}, nil},
		"never, if another owner has brought it": {[]func(*observation.Snapshot){deleting, noPod, otherClaim, drained, week}, nil},
		"if its group went after it had left":    {[]func(*observation.Snapshot){deleting, noPod, retire, drained, groupless, week}, clock().Add(168 * time.Hour).Format(time.RFC3339)},
	} {
		t.Run(name, func(t *testing.T) {
			p := makePlan(world(t, c.world...))
			require.Len(t, p.PatchClaims, 1)
			annotations := p.PatchClaims[0].Body["metadata"].(map[string]any)["annotations"].(map[string]any)
			require.Contains(t, annotations, v1alpha1.AnnotationExpires, "a time of another retirement does not stay")
			assert.Equal(t, c.want, annotations[v1alpha1.AnnotationExpires])
		})
	}
	p := makePlan(world(t, deleting, noPod, week))
	assert.Empty(t, p.PatchClaims, "a member that stays in the cluster keeps its claim")
}

// P3: a group that is deleted in the middle of a scale-in leaves the claims of those
// that have not left as those of all its members.
func TestAMemberThatWasLeavingWhenItsGroupWasDeletedHasNotLeft(t *testing.T) {
	scaled := func(s *observation.Snapshot) {
		s.Now, s.Instance.Spec.ClaimRetention.RetainFor = clock(), &metav1.Duration{Duration: time.Hour}
		s.Instance.Spec.ClaimRetention.WhenScaled = v1alpha1.DeleteClaim
	}
	p := makePlan(world(t, deleting, noPod, member, retire, groupless, scaled))
	assert.True(t, p.RemoveFinalizer)
	assert.Empty(t, p.DeleteClaims)
	assert.Empty(t, p.PatchClaims, "neither retired nor to expire")

	p = makePlan(world(t, deleting, noPod, member, retire, drained, groupless, scaled))
	assert.Len(t, p.DeleteClaims, 1, "a member that has left is deleted as the user wished")
}

// P3: the operator deletes what has expired, and nothing that has not, or whose mark
// was taken away, or whose Instance is there again.
func TestAnExpiredClaimIsDeleted(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) {
		i.Spec.Retire, i.Spec.ClaimRetention.RetainFor = true, &metav1.Duration{Duration: time.Second}
	})
	_, pod := s.ready()
	s.delete()
	s.stop(pod)
	s.gone()
	require.Eventually(t, func() bool {
		pvc := &corev1.PersistentVolumeClaim{}
		return apierrors.IsNotFound(s.get(claim, pvc)) || pvc.DeletionTimestamp != nil
	}, timeout, 20*time.Millisecond)
}

func TestAClaimIsReadLiveBeforeItExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live    func(*corev1.PersistentVolumeClaim)
		before  func(s stage)
		deleted bool
	}{
		"as it was":                           {func(*corev1.PersistentVolumeClaim) {}, nil, true},
		"not retired any more":                {func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationRetired) }, nil, false},
		"to be kept for good":                 {func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationExpires) }, nil, false},
		"another one":                         {func(c *corev1.PersistentVolumeClaim) { c.UID = "another" }, nil, false},
		"with an Instance of its name around": {func(*corev1.PersistentVolumeClaim) {}, func(s stage) { s.create(func(i *v1alpha1.Instance) { i.Labels = map[string]string{byHand: ""} }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
			// Without the label that the running operator's cache selects by.
			pvc := s.restore()
			if c.before != nil {
				c.before(s)
			}
			marked := pvc.DeepCopy()
			marked.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelInstance: "basic-pd-0", v1alpha1.LabelVolume: "data"}
			marked.Annotations = map[string]string{v1alpha1.AnnotationRetired: "it was removed", v1alpha1.AnnotationExpires: "2020-01-01T00:00:00Z", v1alpha1.AnnotationMadeBy: "i", v1alpha1.AnnotationExpiresClaim: string(marked.UID) + " 1h"}
			live := marked.DeepCopy()
			c.live(live)
			e := &expiry.Reconciler{Env: operator.Env{Client: &remembering{Client: api, claim: marked}, Live: &remembering{Client: api, claim: live}, Recorder: events.NewFakeRecorder(8), Now: time.Now}}
			_, err := e.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pvc)})
			require.NoError(t, err)
			assert.Equal(t, c.deleted, s.pvc().DeletionTimestamp != nil)
		})
	}
}
