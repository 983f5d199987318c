package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// judge reports on a world, checks what must hold of every status, and returns
// the Instance as it would then be.
func judge(t *testing.T, acted step.Outcome, changes ...func(*observation.Snapshot)) (*v1alpha1.Instance, finding) {
	t.Helper()
	s := world(t, changes...)
	found := reportStatus(s, makePlan(s), acted, clock())
	i := s.Instance.DeepCopy()
	i.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindInstance}
	i.Status.Conditions = found.after.Conditions
	i.Status.ObservedGeneration, i.Status.Volumes = found.after.ObservedGeneration, found.after.Volumes
	i.Status.PodUID, i.Status.PodIP, i.Status.NodeName, i.Status.Revision = found.after.PodUID, found.after.PodIP, found.after.NodeName, found.after.Revision
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(i)
	require.NoError(t, err)
	assert.Empty(t, invariants.Check(&unstructured.Unstructured{Object: content}))
	return i, found
}

func TestReportNamesWhatBlocksAndWhoMustAct(t *testing.T) {
	gate := func(s *observation.Snapshot) { s.Instance.Spec.ReadinessGates = []string{v1alpha1.ConditionHealthy} }
	unhealthy := func(s *observation.Snapshot) {
		s.Instance.Status.Conditions = append(s.Instance.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMemberUnhealthy, Message: "no answer", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(clock()),
		})
	}
	on := func(nodes ...string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.Volumes[0].Place = observation.Place{Bound: true, Nodes: nodes} }
	}
	forgotten := func(reason string, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
	}
	noClass := func(s *observation.Snapshot) { s.Classes = map[string]*storagev1.StorageClass{} }
	lateBinding := func(s *observation.Snapshot) {
		s.Classes["fast"].VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	noClassNamed := func(s *observation.Snapshot) { s.Volumes[0].Claim.Spec.StorageClassName = nil }
	staticVolume := func(s *observation.Snapshot) { s.Volumes[0].Claim.Spec.StorageClassName = ptr.To("") }
	lostVolume := func(s *observation.Snapshot) { s.Volumes[0].Claim.Status.Phase = corev1.ClaimLost }
	unschedulable := func(s *observation.Snapshot) {
		s.Pod.Spec.NodeName = ""
		s.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 2 node(s) had untolerated taint(s), 1 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available",
		}}}
	}
	gated := func(s *observation.Snapshot) {
		unschedulable(s)
		s.Pod.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	}
	unseen := func(s *observation.Snapshot) {
		s.Pod.Spec.NodeName, s.Pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	}
	preparing := func(s *observation.Snapshot) {
		s.Now = clock()
		s.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
		s.Pod.Spec.Volumes = append(s.Pod.Spec.Volumes,
			corev1.Volume{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
			corev1.Volume{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "basic-pd-r1"}}}})
	}
	sidecar := func(is corev1.ContainerStatus) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			is.Name = "x"
			s.Pod.Spec.InitContainers = []corev1.Container{{Name: "x", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			s.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{is}
		}
	}
	unreachable := func(s *observation.Snapshot) { s.Pod.Status.Conditions[1].Status = corev1.ConditionFalse }
	oom := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
	invalid := func(s *observation.Snapshot) {
		s.Template, s.TemplateErr = nil, errors.New(`unknown field "contaners"`)
	}
	evicted := func(s *observation.Snapshot) { s.Pod.Status.Phase, s.Pod.Status.Reason = corev1.PodFailed, "Evicted" }
	lowOnDisk := func(s *observation.Snapshot) {
		evicted(s)
		s.Pod.Status.Message = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 2Mi. "
	}
	overLimit := func(says string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			evicted(s)
			s.Pod.Status.Message = says
		}
	}
	raiseLimit := "raise the limit, such as ephemeral-storage in spec.resources (kubectl -n ns edit pdgroup basic-pd), or what a LimitRange gives it: kubectl -n ns get limitrange"
	turnedAway := func(s *observation.Snapshot) {
		s.Now, s.Pod.CreationTimestamp = clock(), metav1.NewTime(clock())
		s.Pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "Pod was rejected: The node had condition: [DiskPressure]. "}
	}
	strangersClaim := func(s *observation.Snapshot) {
		s.Volumes[0].Claim.Labels = map[string]string{v1alpha1.LabelInstance: "other-0"}
	}

	done := step.Done()
	for name, c := range map[string]struct {
		acted   step.Outcome
		world   []func(*observation.Snapshot)
		reason  string
		stalled bool
		says    string
	}{
		"an image that cannot be pulled":           {done, []func(*observation.Snapshot){waitingPod("ErrImagePull", "rpc error: 17")}, v1alpha1.ReasonImagePullFailed, false, "or imagePullSecrets: correct spec.image (kubectl -n ns edit pdgroup basic-pd)"},
		"an image of an Instance without a group":  {done, []func(*observation.Snapshot){alone, waitingPod("ErrImagePull", "rpc error: 17")}, v1alpha1.ReasonImagePullFailed, false, "or imagePullSecrets: correct spec.podTemplate (kubectl -n ns edit instance basic-pd-0)"},
		"an image whose signature is refused":      {done, []func(*observation.Snapshot){waitingPod("SignatureValidationFailed", "image pull failed: 17")}, v1alpha1.ReasonImagePullFailed, false, "cannot be pulled"},
		"a hook of the node that fails":            {done, []func(*observation.Snapshot){waitingPod("PreStartHookError", "id 4711")}, v1alpha1.ReasonContainerConfigError, false, "PreStartHookError"},
		"a hook before, that fails":                {done, []func(*observation.Snapshot){waitingPod("PreCreateHookError", "id 4711")}, v1alpha1.ReasonContainerConfigError, false, "PreCreateHookError"},
		"an image name that is none":               {done, []func(*observation.Snapshot){waitingPod("InvalidImageName", "")}, v1alpha1.ReasonImagePullFailed, false, "is not a valid image name: correct it, or the version: spec.image (kubectl -n ns edit pdgroup basic-pd)"},
		"an image that may not be pulled":          {done, []func(*observation.Snapshot){waitingPod("ErrImageNeverPull", "")}, v1alpha1.ReasonImagePullFailed, false, "node n1"},
		"a Secret that is missing":                 {done, []func(*observation.Snapshot){waitingPod("CreateContainerConfigError", `secret "root" not found`)}, v1alpha1.ReasonMissingReference, false, `secret "root" not found`},
		"a key that is missing":                    {done, []func(*observation.Snapshot){waitingPod("CreateContainerConfigError", "couldn't find key k in ConfigMap ns/c")}, v1alpha1.ReasonMissingReference, false, "key k"},
		"a configuration that the kubelet refuses": {done, []func(*observation.Snapshot){waitingPod("CreateContainerConfigError", "container has runAsNonRoot")}, v1alpha1.ReasonContainerConfigError, false, "runAsNonRoot"},
		"a container that cannot be created":       {done, []func(*observation.Snapshot){waitingPod("CreateContainerError", "id 4711")}, v1alpha1.ReasonContainerConfigError, false, "CreateContainerError"},
		"a container in a crash loop":              {done, []func(*observation.Snapshot){waitingPod("CrashLoopBackOff", "back-off 40s")}, v1alpha1.ReasonContainerCrashing, false, "kubectl logs basic-pd-0 -c pd -n ns --previous"},
		"a container out of memory":                {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: oom})}, v1alpha1.ReasonContainerCrashing, false, "exit code 137 (OOMKilled)"},
		"a container started after a crash":        {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: oom})}, v1alpha1.ReasonContainerCrashing, false, "exit code 137 (OOMKilled)"},
		"a container that its node has lost":       {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: forgotten("Unknown", 255)})}, v1alpha1.ReasonContainerCrashing, false, "was lost when node n1 or its container runtime restarted (exit code 255, Unknown), and is not ready since: kubectl describe node n1"},
		"a container that the kubelet cannot find": {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: forgotten("ContainerStatusUnknown", 137)})}, v1alpha1.ReasonContainerCrashing, false, "was lost when node n1"},
		"a container that exits with 255":          {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: forgotten("Error", 255)})}, v1alpha1.ReasonContainerCrashing, false, "stopped with exit code 255 (Error)"},
		"a probe that fails":                       {done, []func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})}, v1alpha1.ReasonPodNotReady, false, "container pd in pod basic-pd-0 on node n1"},
		"a node that does not answer":              {done, []func(*observation.Snapshot){unreachable}, v1alpha1.ReasonNodeUnreachable, false, "kubectl get node n1"},
		"a sidecar that is not ready":              {done, []func(*observation.Snapshot){unreachable, sidecar(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})}, v1alpha1.ReasonPodNotReady, false, "container x in pod basic-pd-0 on node n1"},
		"a sidecar that has ended":                 {done, []func(*observation.Snapshot){unreachable, sidecar(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}})}, v1alpha1.ReasonContainerCrashing, false, "container x in pod basic-pd-0"},
		"a sidecar that is":                        {done, []func(*observation.Snapshot){unreachable, sidecar(corev1.ContainerStatus{Ready: true})}, v1alpha1.ReasonNodeUnreachable, false, "kubectl get node n1"},
		"a readiness gate of the pod's own": {done, []func(*observation.Snapshot){unreachable, func(s *observation.Snapshot) {
			s.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}}, v1alpha1.ReasonPodNotReady, false, "waits for its own readiness gate"},
		"a pod that fits nowhere":                  {done, []func(*observation.Snapshot){unschedulable}, v1alpha1.ReasonPodUnschedulable, false, "on no node: Insufficient cpu, node(s) had untolerated taint(s): fix what taints the node"},
		"a pod whose volume is elsewhere":          {done, []func(*observation.Snapshot){unschedulable, on("n7")}, v1alpha1.ReasonPodUnschedulable, false, "its claim data-basic-pd-0 has its volume on node n7: make room there, or let it take pods: kubectl describe node n7"},
		"a pod whose volume is on two nodes":       {done, []func(*observation.Snapshot){unschedulable, on("n7", "n8")}, v1alpha1.ReasonPodUnschedulable, false, "can be used on nodes n7, n8 only: make room there; if all are gone for good, delete those that are left (kubectl get nodes), then have the member replaced: kubectl -n ns delete instance basic-pd-0"},
		"a pod that is gated":                      {done, []func(*observation.Snapshot){gated}, v1alpha1.ReasonPodPending, false, "SchedulingGated"},
		"a pod that is not scheduled yet":          {done, []func(*observation.Snapshot){unseen}, v1alpha1.ReasonPodPending, false, "waits for the scheduler"},
		"a pod that is being prepared":             {done, []func(*observation.Snapshot){preparing}, v1alpha1.ReasonPodPending, false, "needs Secret tls, ConfigMap basic-pd-r1: if one is missing, create it: kubectl -n ns describe pod basic-pd-0"},
		"an init container that waits for a mount": {done, []func(*observation.Snapshot){preparing, initContainer(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}})}, v1alpha1.ReasonPodPending, false, "needs Secret tls"},
		"an init container that refuses its input": {done, []func(*observation.Snapshot){preparing, initContainer(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}})}, v1alpha1.ReasonContainerCrashing, false, "container users in pod basic-pd-0 stopped with exit code 1 (Error) and is not ready since: kubectl logs basic-pd-0 -c users -n ns --previous"},
		"a pod that was evicted":                   {done, []func(*observation.Snapshot){evicted}, v1alpha1.ReasonPodFailed, false, "Evicted"},
		"a pod whose node is low on disk":          {done, []func(*observation.Snapshot){lowOnDisk}, v1alpha1.ReasonPodFailed, false, "available: 2Mi) and is recreated: node n1 is short of something, such as room on its disk: make room there: kubectl describe node n1"},
		"a container that wrote too much":          {done, []func(*observation.Snapshot){overLimit(`Container pd exceeded its local ephemeral storage limit "1Gi". `)}, v1alpha1.ReasonPodFailed, false, raiseLimit},
		"a pod that wrote too much":                {done, []func(*observation.Snapshot){overLimit(`Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. `)}, v1alpha1.ReasonPodFailed, false, raiseLimit},
		"a pod that wrote too much into a volume":  {done, []func(*observation.Snapshot){overLimit(`Usage of EmptyDir volume "tidb-groups-tmp" exceeds the limit "1Gi". `)}, v1alpha1.ReasonPodFailed, false, raiseLimit},
		"a pod that its node has turned away":      {done, []func(*observation.Snapshot){turnedAway}, v1alpha1.ReasonPodFailed, false, "[DiskPressure]) and is recreated: node n1 is short"},
		"a pod that taints keep off":               {done, []func(*observation.Snapshot){unschedulable}, v1alpha1.ReasonPodUnschedulable, false, "such as a full disk: kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'"},
		"a pod that is being stopped":              {done, []func(*observation.Snapshot){terminatingPod}, v1alpha1.ReasonPodTerminating, false, "pod basic-pd-0 is being stopped on node n1"},
		"a pod of another owner":                   {done, []func(*observation.Snapshot){foreign}, v1alpha1.ReasonPodOfAnotherOwner, true, "delete or rename it"},
		"a pod that a quota forbids":               {step.Fail(v1alpha1.ReasonPodRejected, errors.New("exceeded quota")), []func(*observation.Snapshot){noPod}, v1alpha1.ReasonPodRejected, false, "exceeded quota"},
		"a pod that is invalid":                    {planning.Stall(v1alpha1.ReasonPodRejected, "spec.containers[0].image: required"), []func(*observation.Snapshot){noPod}, v1alpha1.ReasonPodRejected, true, "image: required"},
		"a template that is invalid":               {done, []func(*observation.Snapshot){invalid, noPod}, v1alpha1.ReasonInvalidSpec, true, `spec.podTemplate: unknown field "contaners"`},
		"an invalid template beside a running pod": {done, []func(*observation.Snapshot){invalid}, v1alpha1.ReasonInvalidSpec, true, "nothing has been touched"},
		"a StorageClass that does not exist":       {done, []func(*observation.Snapshot){pendingClaim, noClass, unseen}, v1alpha1.ReasonStorageClassMissing, false, "StorageClass fast of claim data-basic-pd-0 does not exist"},
		"no default StorageClass":                  {done, []func(*observation.Snapshot){pendingClaim, noClassNamed, unseen}, v1alpha1.ReasonStorageClassMissing, false, "none is the default"},
		"a provisioner that does not work":         {done, []func(*observation.Snapshot){pendingClaim, unschedulable}, v1alpha1.ReasonClaimPending, false, "provisioner disk.example of StorageClass fast"},
		"a pod that fits nowhere, claims waiting":  {done, []func(*observation.Snapshot){pendingClaim, lateBinding, unschedulable}, v1alpha1.ReasonPodUnschedulable, false, "fits on no node"},
		"a volume that is not made yet":            {done, []func(*observation.Snapshot){pendingClaim, staticVolume, unseen}, v1alpha1.ReasonClaimPending, false, "PersistentVolume without StorageClass"},
		"a claim that a quota forbids":             {step.Fail(v1alpha1.ReasonClaimRejected, errors.New("exceeded quota")), []func(*observation.Snapshot){noPod, noClaim, unrecorded}, v1alpha1.ReasonClaimRejected, false, "exceeded quota"},
		"a claim that a ResourceQuota forbids":     {planning.Stall(v1alpha1.ReasonQuotaExceeded, "ResourceQuota q is too small"), []func(*observation.Snapshot){noPod, noClaim, unrecorded}, v1alpha1.ReasonQuotaExceeded, true, "ResourceQuota q"},
		"a volume that grows":                      {done, []func(*observation.Snapshot){asksFor("2Gi")}, v1alpha1.ReasonVolumeChanging, false, "claim data-basic-pd-0 asks for 2Gi and has 1Gi"},
		"a file system that is to grow":            {done, []func(*observation.Snapshot){asksFor("2Gi"), claimSays(corev1.PersistentVolumeClaimFileSystemResizePending)}, v1alpha1.ReasonVolumeChanging, false, "annotate instance basic-pd-0 groups.tidb.dev/restart=$(date +%s) --overwrite"},
		"a volume that cannot grow":                {done, []func(*observation.Snapshot){asksFor("2Gi"), claimSays(corev1.PersistentVolumeClaimControllerResizeError)}, v1alpha1.ReasonVolumeChangeFailed, false, "to more than 1Gi"},
		"a VolumeAttributesClass to come":          {done, []func(*observation.Snapshot){attributes("gold", "gold", "")}, v1alpha1.ReasonVolumeChanging, false, "must get VolumeAttributesClass gold"},
		"a VolumeAttributesClass that fails":       {done, []func(*observation.Snapshot){attributes("gold", "gold", ""), claimSays(corev1.PersistentVolumeClaimVolumeModifyVolumeError)}, v1alpha1.ReasonVolumeChangeFailed, false, "set volumeAttributesClassName back"},
		"a VolumeAttributesClass that is missing":  {done, []func(*observation.Snapshot){attributes("gold", "", ""), classless}, v1alpha1.ReasonVolumeAttributesClassMissing, false, "VolumeAttributesClass gold of claim data-basic-pd-0 does not exist: create it"},
		"a VolumeAttributesClass that is dropped":  {done, []func(*observation.Snapshot){attributes("gold", "", ""), dropped}, v1alpha1.ReasonVolumeAttributesUnsupported, true, "does not know VolumeAttributesClasses"},
		"a claim of another Instance":              {done, []func(*observation.Snapshot){noPod, unrecorded, strangersClaim}, v1alpha1.ReasonClaimRejected, true, "belongs to another owner"},
		"a claim that is lost":                     {done, []func(*observation.Snapshot){noPod, noClaim}, v1alpha1.ReasonClaimLost, true, "is gone: if PDGroup basic-pd does not replace the member by itself, restore the claim, or give its data up, and then: kubectl delete instance basic-pd-0 -n ns"},
		"a claim that is lost under a running pod": {done, []func(*observation.Snapshot){otherClaim}, v1alpha1.ReasonClaimLost, true, "data-basic-pd-0"},
		"a claim whose volume is lost":             {done, []func(*observation.Snapshot){lostVolume}, v1alpha1.ReasonClaimLost, true, "lost its volume pv"},
		"a claim that is retired":                  {done, []func(*observation.Snapshot){noPod, retired}, v1alpha1.ReasonClaimRetired, true, "to have a member in another slot: kubectl delete instance basic-pd-0 -n ns; or, if the data is not needed: kubectl delete pvc data-basic-pd-0 -n ns"},
		"a claim that is being deleted":            {done, []func(*observation.Snapshot){terminatingClaim}, v1alpha1.ReasonClaimTerminating, false, "kubectl delete instance basic-pd-0 -n ns"},
		"a gate that is not set":                   {done, []func(*observation.Snapshot){gate}, v1alpha1.ReasonGatesPending, false, "the operator of PDGroup basic-pd has not set condition Healthy yet"},
		"a gate that is closed":                    {done, []func(*observation.Snapshot){gate, unhealthy}, v1alpha1.ReasonGatesPending, false, "Healthy is False for PDGroup basic-pd: no answer"},
		"a namespace that is being deleted":        {planning.Wait("namespace", v1alpha1.ReasonDeleting, "the namespace is being deleted"), []func(*observation.Snapshot){noPod}, v1alpha1.ReasonDeleting, false, "namespace"},
		"a member that is being drained":           {done, []func(*observation.Snapshot){deleting, member}, v1alpha1.ReasonDeleting, false, v1alpha1.FinalizerMember},
	} {
		t.Run(name, func(t *testing.T) {
			i, found := judge(t, c.acted, c.world...)
			upToDate := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate)
			assert.Equal(t, metav1.ConditionFalse, upToDate.Status)
			assert.Equal(t, c.reason, upToDate.Reason)
			assert.Contains(t, upToDate.Message, c.says)
			assert.Equal(t, c.stalled, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionStalled))
			assert.True(t, found.outcome.After > 0 || found.outcome.Kind == step.KindFail, "no wait without deadline")
		})
	}
}

func TestReadyIsThePodTheVolumesAndTheGates(t *testing.T) {
	i, found := judge(t, step.Done())
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate))
	assert.Equal(t, step.KindDone, found.outcome.Kind)
	assert.Equal(t, "r1", i.Status.Revision)
	assert.Equal(t, "n1", i.Status.NodeName)
	assert.Equal(t, "Bound", i.Status.Volumes[0].Phase)
	assert.Equal(t, "1Gi", i.Status.Volumes[0].Capacity.String())
}

func TestTheSameStateGivesTheSameStatus(t *testing.T) {
	s := world(t, terminatingClaim)
	first := reportStatus(s, makePlan(s), step.Done(), clock())
	s.Instance.Status.Conditions = first.after.Conditions
	second := reportStatus(s, makePlan(s), step.Done(), clock().Add(time.Hour))
	first.after.IsFirst = false // there was none before
	assert.Equal(t, first.after, second.after)
	assert.Empty(t, second.transitions)
}

func TestACrashLoopKeepsOneMessage(t *testing.T) {
	crash := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	messages := map[string]bool{}
	for _, c := range []corev1.ContainerStatus{
		{State: crash},
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}}, LastTerminationState: crash, RestartCount: 1},
		{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: crash, RestartCount: 2},
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 20s"}}, LastTerminationState: crash, RestartCount: 2},
	} {
		i, _ := judge(t, step.Done(), notReadyPod(c))
		messages[meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady).Message] = true
	}
	assert.Len(t, messages, 1)
}

// VOL-01: how far a volume is, is told for each, and it serves meanwhile.
func TestVolumesThatChangeServeAndTellHowFarTheyAre(t *testing.T) {
	refused := func(s *observation.Snapshot) { s.Volumes[0].Refused = v1alpha1.ReasonQuotaExceeded }
	gone := func(s *observation.Snapshot) { s.Volumes[0].Refused = v1alpha1.ReasonDeleting }
	for name, c := range map[string]struct {
		world  []func(*observation.Snapshot)
		change string
	}{
		"a volume at rest":                     {nil, ""},
		"a volume that grows":                  {[]func(*observation.Snapshot){asksFor("2Gi")}, "Resizing"},
		"a driver that fails":                  {[]func(*observation.Snapshot){asksFor("2Gi"), claimSays(corev1.PersistentVolumeClaimControllerResizeError)}, "ControllerResizeError"},
		"a kubelet that fails":                 {[]func(*observation.Snapshot){asksFor("2Gi"), claimSays(corev1.PersistentVolumeClaimNodeResizeError)}, "NodeResizeError"},
		"an error that is over":                {[]func(*observation.Snapshot){claimSays(corev1.PersistentVolumeClaimNodeResizeError)}, ""},
		"a claim that a quota keeps small":     {[]func(*observation.Snapshot){refused}, "QuotaExceeded"},
		"a claim of a namespace that is going": {[]func(*observation.Snapshot){gone}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, _ := judge(t, step.Done(), c.world...)
			assert.Equal(t, c.change, i.Status.Volumes[0].Change)
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionVolumesReady))
		})
	}
}

func TestSuspendedIsUpToDateOnceThePodIsGone(t *testing.T) {
	i, _ := judge(t, step.Done(), suspended, noPod)
	ready := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady)
	assert.Equal(t, v1alpha1.ReasonSuspended, ready.Reason)
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate))
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionVolumesReady))
}

func TestPausedTellsWhatItWouldDoAndIsReady(t *testing.T) {
	i, _ := judge(t, step.Done(), paused, revised(image("x")))
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPaused))
	assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
	assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message, "restarted for spec.containers[pd].image")
}

func TestClaimsAreRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		world []func(*observation.Snapshot)
		uid   string
	}{
		"a claim that was not recorded is":                      {[]func(*observation.Snapshot){noPod, unrecorded}, "claim-uid"},
		"a recorded claim stays recorded when another one came": {[]func(*observation.Snapshot){otherClaim}, "claim-uid"},
		"a recorded claim stays recorded when it is gone":       {[]func(*observation.Snapshot){noClaim}, "claim-uid"},
		"another claim is recorded when that is wanted":         {[]func(*observation.Snapshot){otherClaim, recreate}, "other-uid"},
		"a retired claim is not recorded":                       {[]func(*observation.Snapshot){noPod, unrecorded, retired}, ""},
		"a claim that is being deleted is not recorded":         {[]func(*observation.Snapshot){noPod, unrecorded, terminatingClaim}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, _ := judge(t, step.Done(), c.world...)
			assert.Equal(t, c.uid, string(i.Status.Volumes[0].ClaimUID))
		})
	}
}

func TestAFailedReadMakesStatusUnknownAndForgetsNothing(t *testing.T) {
	i, found := judge(t, step.Done(), func(s *observation.Snapshot) { s.Err = errors.New("timeout") })
	assert.Equal(t, metav1.ConditionUnknown, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady).Status)
	assert.Equal(t, "claim-uid", string(found.after.Volumes[0].ClaimUID))
}

// U 5: who pastes what status says must not delete a node that works, nor look for what
// is the operators' own.
func TestRemediesAreSafe(t *testing.T) {
	node := func(state observation.NodeState) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.Node = state }
	}
	at := func(d time.Duration) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.Now = clock().Add(d) }
	}
	nowhere := func(s *observation.Snapshot) {
		s.Pod.Spec.NodeName = ""
		s.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 node(s) didn't match",
		}}}
		s.Volumes[0].Place = observation.Place{Bound: true, Nodes: []string{"n7"}}
	}
	inZone := func(s *observation.Snapshot) {
		nowhere(s)
		s.Pod.Status.Conditions[0].Message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match PersistentVolume's node affinity"
		s.Volumes[0].Place = observation.Place{NodeSelectors: []string{"topology.kubernetes.io/zone in (a)"}}
	}
	starts := func(configMap string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			s.Pod.CreationTimestamp = metav1.NewTime(clock())
			s.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
			s.Pod.Spec.Volumes = append(s.Pod.Spec.Volumes, corev1.Volume{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}})
		}
	}
	unreachable := observation.NodeState{Known: true, Unreachable: true, Since: clock()}
	held := func(s *observation.Snapshot) { s.Pod.Finalizers = []string{"example.com/hold"} }
	for name, c := range map[string]struct {
		world  []func(*observation.Snapshot)
		says   string
		unsaid string
	}{
		"a pod that is being stopped":           {[]func(*observation.Snapshot){terminatingPod, at(-time.Second), node(unreachable)}, "is being stopped on node n1", "kubectl"},
		"one on a node that does not answer":    {[]func(*observation.Snapshot){terminatingPod, at(0), node(unreachable)}, "if it is gone for good: kubectl delete node n1", ""},
		"one that is late on a node that works": {[]func(*observation.Snapshot){terminatingPod, at(0), node(observation.NodeState{Known: true})}, "past its grace period: kubectl -n ns describe pod basic-pd-0", "delete"},
		"one with a finalizer":                  {[]func(*observation.Snapshot){terminatingPod, held, at(0), node(observation.NodeState{Known: true})}, ", past its grace period: it is kept by finalizers example.com/hold: kubectl -n ns get pod basic-pd-0 -o yaml", "delete"},
		"one with a finalizer without a node":   {[]func(*observation.Snapshot){terminatingPod, held, at(0), node(observation.NodeState{Known: true, Absent: true})}, "it is kept by finalizers example.com/hold", "delete"},
		"one whose node may not be read":        {[]func(*observation.Snapshot){terminatingPod, at(0)}, "does the node answer? kubectl get node n1", "delete"},
		"one whose node is gone":                {[]func(*observation.Snapshot){terminatingPod, at(0), node(observation.NodeState{Known: true, Absent: true})}, "which is gone", "delete"},
		"a volume on a cordoned node":           {[]func(*observation.Snapshot){nowhere, at(0), node(observation.NodeState{Known: true, Cordoned: true})}, "it takes no pods: kubectl uncordon n7", "delete"},
		"a volume on a node that went away":     {[]func(*observation.Snapshot){nowhere, at(time.Minute), node(unreachable)}, "it does not answer: kubectl describe node n7", "delete"},
		"a volume on one that stays away":       {[]func(*observation.Snapshot){nowhere, at(5 * time.Minute), node(unreachable)}, "kubectl delete node n7; then have the member replaced: kubectl -n ns delete instance basic-pd-0", ""},
		"a volume on a node that works":         {[]func(*observation.Snapshot){nowhere, at(0), node(observation.NodeState{Known: true})}, "let it take pods: kubectl describe node n7", "delete"},
		"a volume of a zone without room":       {[]func(*observation.Snapshot){inZone, at(0)}, "its claim data-basic-pd-0 can be used only on nodes with topology.kubernetes.io/zone in (a): add such nodes", "other nodes"},
		"the operators' own ConfigMap":          {[]func(*observation.Snapshot){starts("basic-pd-config-0d09a4a18b"), at(time.Hour)}, "is being started on node n1", "create"},
		"a volume that no node gets, perhaps":   {[]func(*observation.Snapshot){starts("basic-pd-config-0d09a4a18b"), at(time.Hour)}, ", which takes long: a large image, or a volume that is still attached to another node? kubectl -n ns describe pod basic-pd-0", "create"},
		"which is looked at after a while only": {[]func(*observation.Snapshot){starts("basic-pd-config-0d09a4a18b"), at(time.Minute)}, "is being started on node n1", "kubectl"},
		"a ConfigMap of a user's, at first":     {[]func(*observation.Snapshot){starts("mine"), at(9 * time.Second)}, "is being started on node n1", "create"},
		"a ConfigMap of a user's":               {[]func(*observation.Snapshot){starts("mine"), at(10 * time.Second)}, "needs ConfigMap mine: if one is missing, create it", ""},
		"a gate that was just asked for":        {[]func(*observation.Snapshot){gateOf(clock()), at(9 * time.Second)}, "has not set condition Healthy yet", "is it running?"},
		"a gate that is not answered":           {[]func(*observation.Snapshot){gateOf(clock()), at(10 * time.Second)}, "has not set condition Healthy yet: is it running?", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, found := judge(t, step.Done(), c.world...)
			message := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message
			assert.Contains(t, message, c.says)
			if c.unsaid != "" {
				assert.NotContains(t, message, c.unsaid)
			}
			assert.Positive(t, found.outcome.After, "it is looked at again")
		})
	}
}

// gateOf waits for the group's operator with a pod that has been ready since a time.
func gateOf(since time.Time) func(*observation.Snapshot) {
	return func(s *observation.Snapshot) {
		s.Instance.Spec.ReadinessGates = []string{v1alpha1.ConditionHealthy}
		podstate.Condition(s.Pod, corev1.PodReady).LastTransitionTime = metav1.NewTime(since)
	}
}

// U 7: what a user must fix is Stalled, but not before it had time to go by itself.
func TestAProblemThatAUserMustFixStallsAfterAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		world   []func(*observation.Snapshot)
		stalled bool
	}{
		"an image that cannot be pulled":      {[]func(*observation.Snapshot){waitingPod("ErrImagePull", "")}, true},
		"a crash loop":                        {[]func(*observation.Snapshot){waitingPod("CrashLoopBackOff", "")}, true},
		"a StorageClass that is missing":      {[]func(*observation.Snapshot){pendingClaim, func(s *observation.Snapshot) { s.Classes = map[string]*storagev1.StorageClass{} }}, true},
		"a probe that fails, which may be ok": {[]func(*observation.Snapshot){notReadyPod(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t, c.world...)
			first := reportStatus(s, makePlan(s), step.Done(), clock())
			assert.False(t, meta.IsStatusConditionTrue(first.after.Conditions, v1alpha1.ConditionStalled), "not at once")
			assert.Positive(t, first.outcome.After)
			s.Instance.Status.Conditions = first.after.Conditions
			early := reportStatus(s, makePlan(s), step.Done(), clock().Add(29*time.Second))
			assert.False(t, meta.IsStatusConditionTrue(early.after.Conditions, v1alpha1.ConditionStalled))
			if c.stalled {
				assert.LessOrEqual(t, early.outcome.After, time.Second, "and it is looked at in time")
			}
			late := reportStatus(s, makePlan(s), step.Done(), clock().Add(30*time.Second))
			assert.Equal(t, c.stalled, meta.IsStatusConditionTrue(late.after.Conditions, v1alpha1.ConditionStalled))
			assert.Equal(t, !c.stalled, meta.IsStatusConditionTrue(late.after.Conditions, v1alpha1.ConditionReconciling))
		})
	}
}

// What counts on the member must not be told that it serves when its pod has just been deleted.
func TestAnInstanceIsNotReadyOnceItsPodIsDeleted(t *testing.T) {
	for name, change := range map[string]func(*observation.Snapshot){
		"for a restart":    revised(image("pingcap/pd:v9")),
		"for a request":    func(s *observation.Snapshot) { s.Instance.Spec.StopPod = s.Pod.UID },
		"for a suspension": func(s *observation.Snapshot) { s.Instance.Spec.Suspended = true },
		"for a deletion":   func(s *observation.Snapshot) { s.Instance.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) },
	} {
		t.Run(name, func(t *testing.T) {
			i, _ := judge(t, step.Done(), change)
			assert.False(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
			assert.True(t, meta.IsStatusConditionFalse(i.Status.Conditions, v1alpha1.ConditionUpToDate))
			assert.Equal(t, v1alpha1.ReasonPodTerminating, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady).Reason)
			i, _ = judge(t, step.Fail(v1alpha1.ReasonRequestFailed, errors.New("no answer")), change)
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady), "it could not be deleted")
		})
	}
}

func TestAnInstanceThatOthersHoldNamesTheirFinalizers(t *testing.T) {
	i, _ := judge(t, step.Done(), noPod, func(s *observation.Snapshot) {
		s.Instance.DeletionTimestamp, s.Instance.Finalizers = ptr.To(metav1.NewTime(clock())), []string{"example.com/audit"}
	})
	assert.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate).Message, "waits for finalizers of others: example.com/audit")
}
