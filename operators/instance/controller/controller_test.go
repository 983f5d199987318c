package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// api is what TestMain hands to the tests: an API server on which the operator
// runs. The tests play the kubelet and the provisioner.
var api client.Client

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runTests runs the tests with the operator, and stops the operator before the
// API server.
func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // may build Kubernetes
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	scheme, err := operator.NewScheme()
	if err != nil {
		return 1, err
	}
	if api, err = client.New(cp.Config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	fast := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example", AllowVolumeExpansion: ptr.To(true)}
	if err := api.Create(ctx, fast); err != nil {
		return 1, err
	}
	identity, err := leastPrivileged(ctx, cp)
	if err != nil {
		return 1, err
	}
	definition := Definition()
	manned, err := labels.Parse("!" + byHand)
	if err != nil {
		return 1, err
	}
	definition.Cached = map[client.Object]cache.ByObject{&v1alpha1.Instance{}: {Label: manned}}
	operatorCtx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() {
		stopped <- operator.Run(operatorCtx, identity, operator.NewProgram(definition), operator.Flags{
			MetricsAddress: "0", ProbeAddress: "0", Concurrency: 8, ReconcileTimeout: time.Minute, ClientQPS: -1,
		})
	}()
	code = controlplane.RunTests(m)
	stop()
	return code, <-stopped
}

// byHand labels Instances that a test reconciles itself; the operator does not
// see them.
const byHand = "test-by-hand"

// leastPrivileged returns access with exactly the rights that the RBAC markers
// in controller.go ask for: every test shows that they are enough.
func leastPrivileged(ctx context.Context, cp *controlplane.ControlPlane) (*rest.Config, error) {
	source, err := os.ReadFile("controller.go")
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "instance"}}
	marker := regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups="?([^",]*)"?,resources=([^,]*),verbs=(.*)$`)
	for _, m := range marker.FindAllStringSubmatch(string(source), -1) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{m[1]}, Resources: strings.Split(m[2], ";"), Verbs: strings.Split(m[3], ";")})
	}
	if err := api.Create(ctx, role); err != nil {
		return nil, err
	}
	return cp.ServiceAccount("tidb-system", "instance"), api.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "instance"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "instance"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "tidb-system", Name: "instance"}},
	})
}

// stage is one Instance in a namespace of its own.
type stage struct {
	*testing.T
	namespace string
}

const (
	timeout = 45 * time.Second
	name    = "basic-pd-0"
	claim   = "data-basic-pd-0"
)

// begin creates an Instance in a new namespace.
func begin(t *testing.T, changes ...func(*v1alpha1.Instance)) stage {
	t.Helper()
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	s.create(changes...)
	return s
}

func (s stage) create(changes ...func(*v1alpha1.Instance)) {
	s.Helper()
	i := newInstance(s.T, s.namespace)
	for _, change := range changes {
		change(i)
	}
	require.NoError(s, api.Create(s.Context(), i))
}

// forAll creates an object that belongs to no namespace, for as long as the test
// lasts.
func (s stage) forAll(object client.Object) {
	s.Helper()
	require.NoError(s, api.Create(s.Context(), object))
	s.Cleanup(func() { assert.NoError(s, api.Delete(context.Background(), object)) })
}

func (s stage) get(name string, into client.Object) error {
	return api.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, into)
}

func (s stage) instance() *v1alpha1.Instance {
	s.Helper()
	i := &v1alpha1.Instance{}
	require.NoError(s, s.get(name, i))
	return i
}

// eventually waits for a condition on the Instance, checking the invariants of
// every status that it sees.
func (s stage) eventually(what string, holds func(*v1alpha1.Instance) bool) *v1alpha1.Instance {
	s.Helper()
	var last *v1alpha1.Instance
	require.Eventually(s, func() bool {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindInstance))
		if s.get(name, u) != nil {
			return false
		}
		for _, broken := range invariants.Check(u) {
			s.Error(broken)
		}
		last = s.instance()
		return holds(last)
	}, timeout, 20*time.Millisecond, "%s; last: %s", what, describe{&last})
	return last
}

// describe prints the conditions of an Instance when it is needed.
type describe struct{ instance **v1alpha1.Instance }

func (d describe) String() string {
	if *d.instance == nil {
		return "none"
	}
	var out []string
	for _, c := range (*d.instance).Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "\n")
}

func (s stage) reason(conditionType, reason string) *v1alpha1.Instance {
	s.Helper()
	return s.eventually(conditionType+" has reason "+reason, func(i *v1alpha1.Instance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, conditionType)
		return c != nil && c.Reason == reason && c.ObservedGeneration == i.Generation
	})
}

func (s stage) edit(change func(*v1alpha1.Instance)) {
	s.Helper()
	require.Eventually(s, func() bool {
		i := s.instance()
		change(i)
		return api.Update(s.Context(), i) == nil
	}, timeout, 20*time.Millisecond)
}

// pod waits for a pod other than the one of the given UID.
func (s stage) pod(other ...string) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{}
	require.Eventually(s, func() bool {
		return s.get(name, pod) == nil && !slices.Contains(other, string(pod.UID))
	}, timeout, 20*time.Millisecond, "a pod is made")
	return pod
}

func (s stage) noPod() {
	s.Helper()
	assert.True(s, apierrors.IsNotFound(s.get(name, &corev1.Pod{})), "there is no pod")
}

// bind plays the provisioner.
func (s stage) bind() *corev1.PersistentVolumeClaim {
	s.Helper()
	pvc := &corev1.PersistentVolumeClaim{}
	require.Eventually(s, func() bool { return s.get(claim, pvc) == nil }, timeout, 20*time.Millisecond, "a claim is made")
	if pvc.Spec.VolumeName == "" {
		pvc.Spec.VolumeName = "pv-" + string(pvc.UID)
		require.NoError(s, api.Update(s.Context(), pvc))
	}
	pvc.Status.Phase = corev1.ClaimBound
	pvc.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	require.NoError(s, api.Status().Update(s.Context(), pvc))
	return pvc
}

// schedule plays the scheduler.
func (s stage) schedule(pod *corev1.Pod) {
	s.Helper()
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	require.NoError(s, api.SubResource("binding").Create(s.Context(), pod, binding))
	require.NoError(s, s.get(name, pod))
}

// run plays the kubelet: the pod starts and becomes ready.
func (s stage) run(pod *corev1.Pod) {
	s.Helper()
	if pod.Spec.NodeName == "" {
		s.schedule(pod)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pd", Image: "pingcap/pd:v8.5.7", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	require.NoError(s, api.Status().Update(s.Context(), pod))
}

// stop plays the kubelet: the pod that is to stop has stopped.
func (s stage) stop(pod *corev1.Pod) {
	s.Helper()
	require.Eventually(s, func() bool {
		live := &corev1.Pod{}
		err := s.get(name, live)
		return apierrors.IsNotFound(err) || (err == nil && (live.UID != pod.UID || live.DeletionTimestamp != nil))
	}, timeout, 20*time.Millisecond, "the pod is told to stop")
	err := api.Delete(s.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if !apierrors.IsConflict(err) { // its successor may be there already
		require.NoError(s, client.IgnoreNotFound(err))
	}
}

// losePVC takes the claim away, whatever protects it.
func (s stage) losePVC() {
	s.Helper()
	pvc := &corev1.PersistentVolumeClaim{}
	require.NoError(s, s.get(claim, pvc))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(s, api.Patch(s.Context(), pvc, patch))
	require.NoError(s, client.IgnoreNotFound(api.Delete(s.Context(), pvc)))
}

// ready brings the Instance up.
func (s stage) ready() (*v1alpha1.Instance, *corev1.Pod) {
	s.Helper()
	pod := s.pod()
	s.bind()
	s.run(pod)
	return s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady), pod
}

func (s stage) delete() {
	s.Helper()
	require.NoError(s, api.Delete(s.Context(), s.instance()))
}

func (s stage) gone() {
	s.Helper()
	require.Eventually(s, func() bool { return apierrors.IsNotFound(s.get(name, &v1alpha1.Instance{})) }, timeout, 20*time.Millisecond, "the Instance is gone")
}

func (s stage) pvc() *corev1.PersistentVolumeClaim {
	s.Helper()
	pvc := &corev1.PersistentVolumeClaim{}
	require.NoError(s, s.get(claim, pvc))
	return pvc
}

func TestAnInstanceBecomesReadyWithItsPodAndClaim(t *testing.T) {
	s := begin(t)
	pod := s.pod()
	i := s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonClaimPending)
	assert.Contains(t, i.Finalizers, v1alpha1.FinalizerInstance)
	assert.Equal(t, s.pvc().UID, i.Status.Volumes[0].ClaimUID, "the claim is recorded before the pod is made")
	assert.Equal(t, claim, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	assert.Equal(t, i.UID, metav1.GetControllerOf(pod).UID)
	assert.Empty(t, s.pvc().OwnerReferences)

	s.bind()
	s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonPodPending)
	s.run(pod)
	i = s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	assert.Equal(t, pod.UID, i.Status.PodUID)
	assert.Equal(t, "10.0.0.1", i.Status.PodIP)
	assert.Equal(t, "n1", i.Status.NodeName)
	assert.Equal(t, "r1", i.Status.Revision)
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate))
}

// PD-14.
func TestReadyWaitsForTheGatesOfTheGroupsOperator(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) { i.Spec.ReadinessGates = []string{v1alpha1.ConditionHealthy} })
	pod := s.pod()
	s.bind()
	s.run(pod)
	i := s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonGatesPending)

	group := status.Writer{Apply: apply.Writer{Client: api, Owner: "pdgroup"}}
	healthy := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMemberHealthy, Message: "healthy", ObservedGeneration: i.Generation, LastTransitionTime: metav1.Now()}
	_, err := group.WriteMember(t.Context(), i, &v1alpha1.MemberStatus{ID: "1", State: "Leader"}, []metav1.Condition{healthy})
	require.NoError(t, err)
	i = s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	assert.Equal(t, "1", i.Status.Member.ID, "the member is the other writer's")
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionHealthy))
}

func TestANewImageRestartsThePodAndNewLabelsDoNot(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()

	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r2"
		i.Spec.PodTemplate = raw(t, podTemplate(label("team", "red"), func(t *corev1.PodTemplateSpec) { t.Annotations = nil }))
	})
	s.eventually("the pod runs revision r2", func(i *v1alpha1.Instance) bool { return i.Status.Revision == "r2" })
	same := s.pod()
	assert.Equal(t, pod.UID, same.UID)
	assert.Equal(t, "red", same.Labels["team"])
	assert.NotContains(t, same.Annotations, "note")

	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r3"
		i.Spec.PodTemplate = raw(t, podTemplate(image("pingcap/pd:v9")))
	})
	s.reason(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodTerminating)
	s.stop(pod)
	next := s.pod(string(pod.UID))
	assert.Equal(t, "pingcap/pd:v9", next.Spec.Containers[0].Image)
	s.run(next)
	i := s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	assert.Equal(t, "r3", i.Status.Revision)
}

func TestATemplateOfTheSameRevisionIsUsedByTheNextPodOnly(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	s.edit(func(i *v1alpha1.Instance) { i.Spec.PodTemplate = raw(t, podTemplate(args("--join=x"))) })
	s.eventually("it is observed", func(i *v1alpha1.Instance) bool { return i.Status.ObservedGeneration == i.Generation })
	assert.Equal(t, pod.UID, s.pod().UID)

	require.NoError(t, api.Delete(t.Context(), s.pod()))
	s.stop(pod)
	assert.Equal(t, []string{"--join=x"}, s.pod(string(pod.UID)).Spec.Containers[0].Args)
}

func TestAPodThatTheAPIServerWouldNotTakeStopsNothing(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r2"
		i.Spec.PodTemplate = raw(t, podTemplate(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].ImagePullPolicy = "Sometimes" }))
	})
	i := s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonPodRejected)
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
	message := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message
	assert.Contains(t, message, "imagePullPolicy")
	assert.Contains(t, message, fmt.Sprintf("Pod %q", pod.Name+"-next"), "the same words at every attempt, or status never comes to rest")
	assert.Equal(t, pod.UID, s.pod().UID)

	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r1"
		i.Spec.PodTemplate = raw(t, podTemplate())
	})
	s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonUpToDate)
	assert.Equal(t, pod.UID, s.pod().UID, "the mistake is undone by reverting the edit")
}

// P7: what a policy of the namespace refuses stops nothing either.
func TestAPodThatAPolicyRefusesStopsNothing(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	require.NoError(t, api.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`))))
	privileged := podTemplate(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	})
	trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "trial"}, Spec: privileged.Spec}
	trial.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	require.Eventually(t, func() bool { return apierrors.IsForbidden(api.Create(t.Context(), trial.DeepCopy(), client.DryRunAll)) }, timeout, 20*time.Millisecond)
	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r2"
		i.Spec.PodTemplate = raw(t, privileged)
	})
	i := s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonPodRejected)
	assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message, "privileged")
	assert.Equal(t, pod.UID, s.pod().UID)
	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision = "r1"
		i.Spec.PodTemplate = raw(t, podTemplate())
	})
	s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonUpToDate)
	assert.Equal(t, pod.UID, s.pod().UID)
}

func TestBadInputIsNamedAndUndoneByFixingIt(t *testing.T) {
	t.Run("a template with an unknown field", func(t *testing.T) {
		s := begin(t, func(i *v1alpha1.Instance) { i.Spec.PodTemplate.Raw = []byte(`{"spec":{"contaners":[]}}`) })
		i := s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonInvalidSpec)
		assert.Empty(t, i.Finalizers, "nothing is touched")
		s.edit(func(i *v1alpha1.Instance) { i.Spec.PodTemplate = raw(t, podTemplate()) })
		s.ready()
	})
	t.Run("a pod that is invalid", func(t *testing.T) {
		s := begin(t, func(i *v1alpha1.Instance) {
			i.Spec.PodTemplate = raw(t, podTemplate(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Name = "P D" }))
		})
		s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonPodRejected)
		s.edit(func(i *v1alpha1.Instance) { i.Spec.PodTemplate = raw(t, podTemplate()) })
		s.ready()
	})
	t.Run("a quota that is too small", func(t *testing.T) {
		t.Parallel()
		s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("0")}}}
		require.NoError(t, api.Create(t.Context(), quota))
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard // the quota controller's part
		require.NoError(t, api.Status().Update(t.Context(), quota))
		s.create()
		i := s.reason(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonQuotaExceeded)
		assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionVolumesReady).Message, "edit resourcequota none")
		require.NoError(t, api.Delete(t.Context(), quota))
		s.ready()
	})
	t.Run("a StorageClass that does not exist, and then does", func(t *testing.T) {
		class := "late"
		s := begin(t, func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].StorageClassName = &class })
		i := s.reason(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonStorageClassMissing)
		assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady).Message, "StorageClass late")
		s.forAll(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "disk.example"})
		s.reason(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimPending)
	})
	t.Run("a StorageClass that does not exist, and another one named instead", func(t *testing.T) {
		s := begin(t, func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].StorageClassName = ptr.To("typo") })
		s.reason(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonStorageClassMissing)
		s.edit(func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].StorageClassName = ptr.To("fast") })
		s.eventually("the claim that was never bound goes", func(*v1alpha1.Instance) bool {
			pvc := &corev1.PersistentVolumeClaim{}
			return apierrors.IsNotFound(s.get(claim, pvc)) || pvc.DeletionTimestamp != nil || *pvc.Spec.StorageClassName == "fast"
		})
		if pvc := s.pvc(); *pvc.Spec.StorageClassName == "typo" {
			s.losePVC() // the protection controller's part
		}
		s.reason(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimPending)
		s.ready()
	})
	t.Run("an image that cannot be pulled", func(t *testing.T) {
		s := begin(t)
		pod := s.pod()
		s.bind()
		s.schedule(pod)
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pd", Image: "pingcap/pd:v8.5.7", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off 5s"}}}}
		require.NoError(t, api.Status().Update(t.Context(), pod))
		i := s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonImagePullFailed)
		assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady).Message, "pingcap/pd:v8.5.7")

		s.edit(func(i *v1alpha1.Instance) {
			i.Spec.Revision, i.Spec.PodTemplate = "r2", raw(t, podTemplate(image("pingcap/pd:v8.5.6")))
		})
		s.stop(pod)
		s.run(s.pod(string(pod.UID)))
		s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	})
	t.Run("a pod of another owner", func(t *testing.T) {
		t.Parallel()
		s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
		stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
		require.NoError(t, api.Create(t.Context(), stranger))
		s.create()
		s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonPodOfAnotherOwner)
		assert.Equal(t, stranger.ResourceVersion, s.pod().ResourceVersion, "it is not touched")
		s.delete()
		s.gone()
		assert.Equal(t, stranger.UID, s.pod().UID)
	})
}

func TestAnEvictedPodIsRecreated(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	require.NoError(t, s.get(name, pod))
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	require.NoError(t, api.Status().Update(t.Context(), pod))
	s.stop(pod)
	s.run(s.pod(string(pod.UID)))
	s.eventually("the new pod is ready", func(i *v1alpha1.Instance) bool {
		return i.Status.PodUID != pod.UID && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
	})
}

func TestALostClaimIsHeldOrRecreatedAsTheSpecSays(t *testing.T) {
	lose := func(s stage) (*corev1.Pod, *corev1.PersistentVolumeClaim) {
		_, pod := s.ready()
		old := s.pvc()
		s.losePVC()
		require.NoError(s, api.Delete(s.Context(), s.pod()))
		s.stop(pod)
		return pod, old
	}
	t.Run("Hold starts no pod and says who must act", func(t *testing.T) {
		s := begin(t)
		_, old := lose(s)
		i := s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonClaimLost)
		assert.Equal(t, old.UID, i.Status.Volumes[0].ClaimUID, "it is remembered")
		s.eventually("the pod is gone", func(i *v1alpha1.Instance) bool { return i.Status.PodUID == "" })
		s.noPod()

		fake := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: claim, Labels: old.Labels}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: old.Spec.AccessModes, Resources: old.Spec.Resources, StorageClassName: old.Spec.StorageClassName}}
		require.NoError(t, api.Create(t.Context(), fake))
		s.eventually("a claim of the same name is not taken for it", func(i *v1alpha1.Instance) bool {
			return i.Status.Volumes[0].Phase == "Pending" && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionStalled)
		})
		s.noPod()

		s.delete()
		s.gone()
		s.create()
		s.ready()
	})
	t.Run("Recreate makes an empty one and records it", func(t *testing.T) {
		s := begin(t, func(i *v1alpha1.Instance) { i.Spec.ClaimLoss = v1alpha1.RecreateLostClaim })
		pod, old := lose(s)
		next := s.pod(string(pod.UID))
		fresh := s.bind()
		assert.NotEqual(t, old.UID, fresh.UID)
		s.run(next)
		i := s.reason(v1alpha1.ConditionReady, v1alpha1.ReasonReady)
		assert.Equal(t, fresh.UID, i.Status.Volumes[0].ClaimUID)
	})
}

// VOL-06.
func TestDeletionStopsThePodAndAppliesTheRetention(t *testing.T) {
	for name, c := range map[string]struct {
		spec    func(*v1alpha1.Instance)
		before  func(s stage)
		deleted bool
		retired bool
	}{
		"claims are retained":                 {func(*v1alpha1.Instance) {}, nil, false, false},
		"claims go when whenDeleted says so":  {func(i *v1alpha1.Instance) { i.Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim }, nil, true, false},
		"claims are retired after a scale-in": {func(i *v1alpha1.Instance) { i.Spec.Retire = true }, nil, false, true},
		"whenDeleted does not matter in a scale-in": {func(i *v1alpha1.Instance) {
			i.Spec.Retire, i.Spec.ClaimRetention.WhenDeleted = true, v1alpha1.DeleteClaim
		}, nil, false, true},
		"claims go after a scale-in that says so": {func(i *v1alpha1.Instance) {
			i.Spec.Retire, i.Spec.ClaimRetention.WhenScaled = true, v1alpha1.DeleteClaim
		}, nil, true, false},
		"deletion goes on while paused":             {func(*v1alpha1.Instance) {}, func(s stage) { s.edit(func(i *v1alpha1.Instance) { i.Spec.Paused = true }) }, false, false},
		"deletion goes on with an invalid template": {func(*v1alpha1.Instance) {}, func(s stage) { s.edit(func(i *v1alpha1.Instance) { i.Spec.PodTemplate.Raw = []byte(`{}`) }) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, c.spec)
			_, pod := s.ready()
			if c.before != nil {
				c.before(s)
			}
			s.delete()
			s.reason(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodTerminating)
			assert.Nil(t, s.pvc().DeletionTimestamp, "claims come after the pod")
			s.stop(pod)
			s.gone()
			assert.Equal(t, c.deleted, s.pvc().DeletionTimestamp != nil)
			assert.Equal(t, c.retired, s.pvc().Annotations[v1alpha1.AnnotationRetired] != "")
			assert.Equal(t, c.retired, s.pvc().Labels[v1alpha1.LabelRetired] == "true", "such claims can be listed")
		})
	}
}

func TestDeletionWaitsForTheMemberToBeDrained(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) { i.Finalizers = []string{v1alpha1.FinalizerMember} })
	_, pod := s.ready()
	// Without a group nothing would hold it.
	group := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "basic-pd"}}
	group.Spec.Version, group.Spec.Replicas = "v8.5.7", ptr.To(int32(1))
	group.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	require.NoError(t, api.Create(t.Context(), group))
	s.delete()
	i := s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonDeleting)
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
	assert.Nil(t, s.pod().DeletionTimestamp)
	s.edit(func(i *v1alpha1.Instance) { controllerutil.RemoveFinalizer(i, v1alpha1.FinalizerMember) })
	s.stop(pod)
	s.gone()
}

// VOL-05.
func TestARetainedClaimIsAdoptedAndARetiredOneIsNot(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	kept := s.pvc()
	s.delete()
	s.stop(pod)
	s.gone()

	s.create()
	i, pod := s.ready()
	assert.Equal(t, kept.UID, i.Status.Volumes[0].ClaimUID)
	s.edit(func(i *v1alpha1.Instance) { i.Spec.Retire = true })
	s.delete()
	s.stop(pod)
	s.gone()

	s.create()
	s.reason(v1alpha1.ConditionStalled, v1alpha1.ReasonClaimRetired)
	s.noPod()
	s.losePVC()
	s.ready()
}

func TestSuspendedStopsThePodAndKeepsTheClaim(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	kept := s.pvc()
	s.edit(func(i *v1alpha1.Instance) { i.Spec.Suspended = true })
	s.stop(pod)
	i := s.eventually("it is suspended", func(i *v1alpha1.Instance) bool {
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate) && i.Status.ObservedGeneration == i.Generation
	})
	assert.Equal(t, v1alpha1.ReasonSuspended, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady).Reason)
	s.noPod()
	assert.Equal(t, kept.UID, s.pvc().UID)
	s.edit(func(i *v1alpha1.Instance) { i.Spec.Suspended = false })
	s.ready()
}

func TestPausedChangesNothingButStatus(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) { i.Spec.Paused = true })
	i := s.reason(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused)
	// The group that it names is not there.
	assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPaused).Message, "kubectl -n "+s.namespace+" edit instance "+i.Name)
	assert.Empty(t, i.Finalizers)
	s.noPod()
	assert.True(t, apierrors.IsNotFound(s.get(claim, &corev1.PersistentVolumeClaim{})))
	s.edit(func(i *v1alpha1.Instance) { i.Spec.Paused = false })
	_, pod := s.ready()

	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Paused, i.Spec.Revision, i.Spec.PodTemplate = true, "r2", raw(t, podTemplate(image("pingcap/pd:v9")))
	})
	s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonRestartPending)
	assert.Nil(t, s.pod().DeletionTimestamp)
	assert.Equal(t, pod.UID, s.pod().UID)
}

// VOL-01, KV-23.
func TestAClaimGrowsInPlace(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	s.edit(func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].Storage = resource.MustParse("2Gi") })
	s.eventually("the claim asks for more", func(*v1alpha1.Instance) bool {
		requested := s.pvc().Spec.Resources.Requests[corev1.ResourceStorage]
		return requested.String() == "2Gi"
	})
	assert.Equal(t, pod.UID, s.pod().UID)
}

// VOL-02: a VolumeAttributesClass is asked for online; one that does not exist is
// named, and taking it back fixes it.
func TestAClaimGetsAnotherVolumeAttributesClassInPlace(t *testing.T) {
	s := begin(t)
	_, pod := s.ready()
	class := func(name *string) {
		s.edit(func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].VolumeAttributesClassName = name })
	}
	upToDate := func(i *v1alpha1.Instance) bool {
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate) && i.Status.Volumes[0].Change == ""
	}
	class(ptr.To("not-there"))
	i := s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonVolumeAttributesClassMissing)
	assert.Equal(t, v1alpha1.ReasonVolumeAttributesClassMissing, i.Status.Volumes[0].Change)
	assert.Nil(t, s.pvc().Spec.VolumeAttributesClassName)
	class(nil)
	s.eventually("it is taken back", upToDate)

	gold := "gold-" + s.namespace // Kubernetes keeps one that has been asked for
	s.forAll(&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: gold}, DriverName: "disk.example", Parameters: map[string]string{"iops": "9000"}})
	class(&gold)
	i = s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonVolumeChanging)
	assert.Equal(t, "ModifyingVolume", i.Status.Volumes[0].Change)
	assert.Equal(t, gold, *s.pvc().Spec.VolumeAttributesClassName)
	class(nil)
	s.eventually("what has not come yet is taken back", func(i *v1alpha1.Instance) bool { return upToDate(i) && s.pvc().Spec.VolumeAttributesClassName == nil })

	class(&gold)
	s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonVolumeChanging)
	pvc := s.pvc()
	pvc.Status.CurrentVolumeAttributesClassName = &gold // the driver's part
	require.NoError(t, api.Status().Update(t.Context(), pvc))
	s.eventually("the volume has it", func(i *v1alpha1.Instance) bool {
		return upToDate(i) && i.Status.Volumes[0].VolumeAttributesClassName == gold
	})
	assert.Equal(t, pod.UID, s.pod().UID)
}

// forgetful is an API server that does not know a field: it answers without it.
type forgetful struct {
	client.Client
	patches int
}

func (f *forgetful) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	f.patches++
	return nil
}

// VOL-02: an API server without the feature drops the field. It is asked once for
// each spec.
func TestAVolumeAttributesClassThatIsDroppedIsAskedForOnce(t *testing.T) {
	server := &forgetful{}
	r := &reconciler{Env: operator.Env{Client: server, Recorder: events.NewFakeRecorder(8)}}
	s := world(t, attributes("gold", "", ""))
	look := func() *planning.Plan {
		v := &s.Volumes[0]
		v.Dropped = false
		require.NoError(t, r.observeAttributes(t.Context(), s.Instance, v))
		return makePlan(s)
	}
	for range 3 {
		p := look()
		found := reportStatus(s, p, r.act(t.Context(), s, p), clock())
		assert.Equal(t, v1alpha1.ReasonVolumeAttributesUnsupported, found.outcome.Reason)
		assert.Equal(t, v1alpha1.ReasonVolumeAttributesUnsupported, found.after.Volumes[0].Change)
		s.Instance.Status.Volumes, s.Instance.Status.ObservedGeneration = found.after.Volumes, found.after.ObservedGeneration
	}
	assert.Equal(t, 1, server.patches)
	s.Instance.Generation++
	assert.Equal(t, "ClaimUpdated", actions(look()), "another spec is another attempt")
}

// VOL-01, P7: what a ResourceQuota or a LimitRange does not let a claim grow to is
// named with the remedy, the pod goes on, and either end of it can be fixed.
func TestAClaimThatMayNotGrowSaysWhoForbidsIt(t *testing.T) {
	limit := resource.MustParse("1500Mi")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsStorage: limit}}}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("1Gi")}}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: limit},
	}}}}
	for name, c := range map[string]struct {
		forbid client.Object
		reason string
		says   string
	}{
		"a ResourceQuota": {quota, v1alpha1.ReasonQuotaExceeded, "ResourceQuota disk is too small for claim " + claim},
		"a LimitRange":    {limits, v1alpha1.ReasonLimitRangeExceeded, "a LimitRange wants claims to ask for a maximum of 1500Mi, and claim " + claim},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			_, pod := s.ready()
			forbid := c.forbid.DeepCopyObject().(client.Object)
			forbid.SetNamespace(s.namespace)
			status := forbid.DeepCopyObject().(client.Object)
			require.NoError(t, api.Create(t.Context(), forbid))
			if q, ok := status.(*corev1.ResourceQuota); ok {
				q.ResourceVersion = forbid.GetResourceVersion()
				require.NoError(t, api.Status().Update(t.Context(), q)) // the quota controller's part
			}
			size := func(text string) {
				s.edit(func(i *v1alpha1.Instance) { i.Spec.VolumeClaimTemplates[0].Storage = resource.MustParse(text) })
			}
			// Admission learns of it through a cache: an increase may slip through.
			require.Eventually(t, func() bool {
				trial := s.pvc()
				trial.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
				return apierrors.IsForbidden(api.Update(t.Context(), trial, client.DryRunAll))
			}, timeout, 20*time.Millisecond)
			size("2Gi")
			i := s.reason(v1alpha1.ConditionUpToDate, c.reason)
			assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message, c.says)
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady), "it serves meanwhile")
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionStalled))
			assert.Equal(t, c.reason, i.Status.Volumes[0].Change)
			assert.Equal(t, "1Gi", i.Status.Volumes[0].Requested.String())

			size("1Gi")
			s.eventually("setting it back undoes it", func(i *v1alpha1.Instance) bool {
				return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate) && i.Status.Volumes[0].Change == ""
			})
			size("2Gi")
			s.reason(v1alpha1.ConditionUpToDate, c.reason)
			require.NoError(t, api.Delete(t.Context(), forbid))
			s.eventually("it is tried again", func(i *v1alpha1.Instance) bool { return i.Status.Volumes[0].Requested.String() == "2Gi" })
			i = s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonVolumeChanging)
			assert.Equal(t, "Resizing", i.Status.Volumes[0].Change)
			assert.Equal(t, pod.UID, s.pod().UID)
		})
	}
}

// P8, P11: LimitRanger judges a claim's size at every change, and nothing that the user
// has changed can be set back.
func TestADeletionNamesALaterLimitRangeThatBlocksIt(t *testing.T) {
	s := begin(t, func(i *v1alpha1.Instance) { i.Spec.Retire = true })
	_, pod := s.ready()
	require.NoError(t, api.Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "disk", Namespace: s.namespace}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Mi")},
	}}}}))
	require.Eventually(t, func() bool {
		trial := s.pvc()
		trial.Annotations = map[string]string{"x": "y"}
		return apierrors.IsForbidden(api.Update(t.Context(), trial, client.DryRunAll))
	}, timeout, 20*time.Millisecond)
	s.delete()
	s.stop(pod)
	i := s.reason(v1alpha1.ConditionUpToDate, v1alpha1.ReasonLimitRangeExceeded)
	assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message, "kubectl -n "+s.namespace+" delete pvc "+claim)
	require.NoError(t, api.Delete(t.Context(), s.pvc()))
	s.gone()
}

// P9: once it has arrived, nothing is written, however often it is looked at.
func TestAnIdleInstanceIsNotWritten(t *testing.T) {
	s := begin(t)
	s.ready()
	versions := func() []string {
		return []string{s.instance().ResourceVersion, s.pod().ResourceVersion, s.pvc().ResourceVersion}
	}
	r, recorder := manual(api)
	before := versions()
	for range 20 {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.namespace, Name: name}})
		require.NoError(t, err)
		assert.Zero(t, result, "nothing is waited for")
	}
	assert.Equal(t, before, versions())
	assert.Empty(t, recorder.Events)
}

// manual returns a reconciler that works without a manager, and its Events.
func manual(c client.Client) (*reconciler, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(1000)
	return &reconciler{Env: operator.Env{
		Name: "instance", Client: c, Live: c, Recorder: recorder, Now: time.Now,
		Status: status.Writer{Apply: apply.Writer{Client: c, Owner: "instance"}, Recorder: recorder, Version: operator.Version()},
	}}, recorder
}

// The instance operator leaves alone what the group's operator applies.
func TestASpecThatIsAppliedAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	wanted := newInstance(t, s.namespace)
	_, err := apply.Writer{Client: api, Owner: "pdgroup"}.Object(t.Context(), wanted, nil)
	require.NoError(t, err)
	i, _ := s.ready()
	result, err := apply.Writer{Client: api, Owner: "pdgroup"}.Object(t.Context(), wanted, i)
	require.NoError(t, err)
	assert.Equal(t, apply.Unchanged, result)
}
