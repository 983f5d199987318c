package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// remembering is a cache that still shows a claim, or a pod, as it once was.
type remembering struct {
	client.Client
	claim *corev1.PersistentVolumeClaim
	pod   *corev1.Pod
}

func (r *remembering) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if pvc, ok := into.(*corev1.PersistentVolumeClaim); ok && r.claim != nil {
		r.claim.DeepCopyInto(pvc)
		return nil
	}
	if pod, ok := into.(*corev1.Pod); ok && r.pod != nil {
		r.pod.DeepCopyInto(pod)
		return nil
	}
	return r.Client.Get(ctx, key, into, opts...)
}

// byHand is an Instance that the test reconciles, behind a cache.
func (s stage) byHand() (*reconciler, *faulty, *remembering) {
	s.Helper()
	f := &faulty{Client: api}
	r, _ := manual(f)
	cache := &remembering{Client: f}
	r.Client, r.Live = cache, api
	s.create(func(i *v1alpha1.Instance) { i.Labels = map[string]string{byHand: ""} })
	return r, f, cache
}

// remembered is byHand with a pod that runs, whose claim the cache goes on to show as it
// is now.
func (s stage) remembered() (*reconciler, *faulty, *corev1.Pod) {
	s.Helper()
	r, f, cache := s.byHand()
	s.settle(r, f)
	pod := s.pod()
	cache.claim = s.bind()
	s.run(pod)
	s.settle(r, f)
	return r, f, pod
}

// restore makes a claim as a backup tool or a user does, who knows nothing of
// our labels.
func (s stage) restore(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	s.Helper()
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: claim}}
	pvc.Spec.AccessModes, pvc.Spec.StorageClassName = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ptr.To("fast")
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	for _, change := range changes {
		change(pvc)
	}
	require.NoError(s, api.Create(s.Context(), pvc))
	return pvc
}

// P3, P6.
func TestACacheThatLagsRecordsNoClaimThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	r, f, cache := s.byHand()
	there := s.restore(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{v1alpha1.AnnotationAdopt: name}
	})
	cache.claim = there.DeepCopy()
	cache.claim.UID, cache.claim.Labels = "one-of-before", map[string]string{v1alpha1.LabelInstance: name}
	s.settle(r, f)
	assert.Equal(t, there.UID, s.instance().Status.Volumes[0].ClaimUID)
}

// P11: the API server calls it invalid to change an object of another UID. No field of a user is wrong then.
func TestAChangeOfAClaimThatOnlyACacheRemembersIsNoMistakeOfTheUser(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	r, _, _ := s.remembered()
	s.losePVC()
	s.restore()
	s.edit(func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].Storage = resource.MustParse("2Gi") })
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name}})
	require.NoError(t, err)
	assert.Equal(t, step.ConflictDelay, result.RequeueAfter, "it looks again")
	stalled := meta.FindStatusCondition(s.instance().Status.Conditions, v1alpha1.ConditionStalled)
	assert.True(t, stalled == nil || stalled.Status == metav1.ConditionFalse, "%v", stalled)
}

// P2, P3, P6: a pod that were made would wait for the claim, and start on whatever
// comes under its name.
func TestNoPodIsMadeOnAClaimThatOnlyACacheRemembers(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	r, f, pod := s.remembered()
	s.losePVC()
	require.NoError(t, api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	s.settle(r, f)
	s.noPod()
	assert.Equal(t, v1alpha1.ReasonClaimLost, meta.FindStatusCondition(s.instance().Status.Conditions, v1alpha1.ConditionVolumesReady).Reason)
}

// P3, P6: a claim that is being deleted is kept by the pod that uses it.
func TestNoPodIsStoppedWhileACacheHasNotSeenThatItsClaimIsBeingDeleted(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	r, f, pod := s.remembered()
	going := s.pvc()
	going.Finalizers = []string{"kubernetes.io/pvc-protection"}
	require.NoError(t, api.Update(t.Context(), going))
	require.NoError(t, api.Delete(t.Context(), going))
	s.edit(func(i *v1alpha1.Instance) { i.Spec.StopPod = pod.UID })
	s.settle(r, f)
	assert.Equal(t, pod.UID, s.pod().UID)
	assert.Nil(t, s.pod().DeletionTimestamp)
	assert.Equal(t, v1alpha1.ReasonClaimTerminating, meta.FindStatusCondition(s.instance().Status.Conditions, v1alpha1.ConditionUpToDate).Reason)
	going = s.pvc()
	going.Finalizers = nil
	require.NoError(t, api.Update(t.Context(), going))
}

// P1: a permission to stop may be taken back while the pod is just being stopped, and a
// claim be deleted right after. Who goes by what is said of the Instance as it is now must
// not take the pod for one that goes on running.
func TestAStoppedPodIsNotReportedReadyWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(i *v1alpha1.Instance, pod types.UID)
	}{
		"whose stop has been taken back": {func(i *v1alpha1.Instance, pod types.UID) { i.Spec.StopPod = pod }, func(i *v1alpha1.Instance, _ types.UID) { i.Spec.StopPod = "" }},
		"that is to stop":                {func(*v1alpha1.Instance, types.UID) {}, func(i *v1alpha1.Instance, pod types.UID) { i.Spec.StopPod = pod }},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
			r, f, pod := s.remembered()
			s.edit(func(i *v1alpha1.Instance) { c.before(i, pod.UID) })
			cache, ok := r.Client.(*remembering)
			require.True(t, ok)
			cache.pod = s.pod().DeepCopy()
			require.NoError(t, api.Delete(t.Context(), pod))
			require.NotNil(t, s.pod().DeletionTimestamp)
			s.edit(func(i *v1alpha1.Instance) { c.after(i, pod.UID) })
			s.settle(r, f)
			i := s.instance()
			assert.Equal(t, i.Generation, i.Status.ObservedGeneration)
			assert.Equal(t, v1alpha1.ReasonPodTerminating, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady).Reason)
			assert.Equal(t, v1alpha1.ReasonPodTerminating, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Reason)
		})
	}
}

// VOL-06, P3: caches select by label, and a user who restores a claim need not know that.
func TestARestoredClaimIsLabelledAndOutlivesTheInstance(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) { i.Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim })
	_, pod := s.ready()
	s.losePVC()
	require.NoError(t, api.Delete(t.Context(), s.pod()))
	s.stop(pod)
	s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonClaimLost)
	s.noPod()
	s.restore()
	begun := time.Now()
	require.Eventually(t, func() bool { return s.pvc().Labels[v1alpha1.LabelInstance] == name }, timeout, 20*time.Millisecond)
	assert.Less(t, time.Since(begun), machine.StretchWait(5*time.Second))
	s.delete()
	s.gone()
	assert.Nil(t, s.pvc().DeletionTimestamp)
}

// P3, S F5: what looks like a StatefulSet's claim is left alone, whatever the policy,
// until a user says whose it is, and is never deleted then.
func TestAClaimOfAStrangerIsNeitherTakenNorDeleted(t *testing.T) {
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	theirs := s.restore()
	s.create(func(i *v1alpha1.Instance) {
		i.Spec.ClaimRetention = v1alpha1.ClaimRetention{WhenDeleted: v1alpha1.DeleteClaim, WhenScaled: v1alpha1.DeleteClaim}
	})
	s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonClaimRejected)
	s.noPod()
	assert.Equal(t, theirs.ResourceVersion, s.pvc().ResourceVersion, "nothing of it is changed")
	said := meta.FindStatusCondition(s.instance().Status.Conditions, v1alpha1.ConditionStalled).Message
	assert.Contains(t, said, "annotate pvc "+claim+" "+v1alpha1.AnnotationAdopt+"="+name)

	there := s.pvc()
	there.Annotations = map[string]string{v1alpha1.AnnotationAdopt: name}
	require.NoError(t, api.Update(t.Context(), there))
	require.Eventually(t, func() bool { return s.instance().Status.PodUID != "" }, timeout, 20*time.Millisecond)
	assert.Equal(t, theirs.UID, s.instance().Status.Volumes[0].ClaimUID)
	pod := s.pod()
	s.delete()
	s.stop(pod)
	s.gone()
	assert.Nil(t, s.pvc().DeletionTimestamp, "whenDeleted is Delete, and it is a user's")
}

// P11: a quota that is too small for a pod, and then is not.
func TestAPodThatAQuotaForbidsNamesTheQuota(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	status := corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	require.NoError(t, api.Create(t.Context(), quota))
	quota.Status = status
	require.NoError(t, api.Status().Update(t.Context(), quota)) // the quota controller's part
	trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "trial"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
	require.Eventually(t, func() bool { return apierrors.IsForbidden(api.Create(t.Context(), trial.DeepCopy(), client.DryRunAll)) }, timeout, 20*time.Millisecond)
	s.create()
	i := s.reason(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodRejected)
	message := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady).Message
	assert.Contains(t, message, "ResourceQuota few is too small for pod "+name+" (it adds pods=1, the limit is pods=0): see what uses it: kubectl -n "+s.namespace+" describe resourcequota few")
	assert.NotContains(t, message, "used:", "what others use changes by itself")
	require.NoError(t, api.Patch(t.Context(), quota, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"9"}},"status":{"hard":{"pods":"9"}}}`))))
	require.NoError(t, api.Status().Patch(t.Context(), quota, client.RawPatch(types.MergePatchType, []byte(`{"status":{"hard":{"pods":"9"}}}`))))
	s.ready()
}
