package stage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// PlayInstances plays the instance operator and the pods until the test ends: a
// pod is ready at once unless the test says otherwise, an Instance is Ready
// when its pod is and its gates are True. One that is deleted runs on until its
// group's operator lets it go, or there is no group. then is told of every version of an
// Instance that has been played; nil is none.
func (s *Stage) PlayInstances(then func(context.Context, *v1alpha1.Instance)) {
	s.Helper()
	s.Follow(&v1alpha1.InstanceList{}, func(ctx context.Context, o client.Object) {
		i, ok := o.(*v1alpha1.Instance)
		if !ok || i.DeletionTimestamp != nil && s.releasesInstance(ctx, i) {
			return
		}
		s.writeInstanceStatus(ctx, i)
		if then != nil {
			then(ctx, i)
		}
	})
}

// PlayStores is PlayInstances for a kind of stores: the store of an Instance
// registers with PD at <host>:port when its pod runs for the first time, and
// never again.
func (s *Stage) PlayStores(group string, port int32) {
	s.Helper()
	s.PlayInstances(func(_ context.Context, i *v1alpha1.Instance) {
		s.mu.Lock()
		runs := !s.down[i.Name] && !i.Spec.Suspended
		s.mu.Unlock()
		if runs && i.Status.Member == nil {
			s.PD.Register(fmt.Sprintf("%s:%d", names.PodHost(i.Name, group, s.Namespace, ""), port))
		}
	})
}

// BreakImage has no image pulled that contains a text.
func (s *Stage) BreakImage(image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = image
}

// SetNode says on which node the pod of an Instance will run.
func (s *Stage) SetNode(instance, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[instance] = node
}

// SetDown has the pod of an Instance not ready, or ready again; one that does not
// exist yet is so when it comes.
func (s *Stage) SetDown(instance string, down bool) {
	s.Helper()
	s.mu.Lock()
	s.down[instance] = down
	s.mu.Unlock()
	i := &v1alpha1.Instance{}
	err := s.Client.Get(s.Context(), s.Key(instance), i)
	require.NoError(s, client.IgnoreNotFound(err))
	if err == nil {
		s.writeInstanceStatus(s.Context(), i)
	}
}

// releasesInstance reports whether a deleted Instance goes, as its member has left or its group is gone
// or going: nothing else releases it then.
func (s *Stage) releasesInstance(ctx context.Context, i *v1alpha1.Instance) bool {
	s.Helper()
	if member.HasMemberFinalizer(i) {
		group := &metav1.PartialObjectMetadata{}
		group.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(i.Spec.Group.Kind))
		err := s.Client.Get(ctx, s.Key(i.Spec.Group.Name), group)
		if err == nil && group.DeletionTimestamp == nil {
			return false
		}
		s.tolerate(ctx, client.IgnoreNotFound(err))
	}
	gone := i.DeepCopy()
	controllerutil.RemoveFinalizer(gone, v1alpha1.FinalizerMember)
	controllerutil.RemoveFinalizer(gone, v1alpha1.FinalizerInstance)
	s.tolerate(ctx, s.Client.Patch(ctx, gone, client.MergeFromWithOptions(i, client.MergeFromWithOptimisticLock{})))
	return true
}

// tolerate takes what an Instance that changes or goes meanwhile makes of a
// write.
func (s *Stage) tolerate(ctx context.Context, err error) {
	s.Helper()
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		assert.NoError(s, err)
	}
}

// verdict is a status of a condition with its reason and message.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// podVerdict says how the pod of an Instance is.
func (s *Stage) podVerdict(i *v1alpha1.Instance) verdict {
	var template corev1.PodTemplateSpec
	if !assert.NoError(s, json.Unmarshal(i.Spec.PodTemplate.Raw, &template)) || len(template.Spec.Containers) == 0 {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonPodNotReady, "the pod has no containers"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case i.Spec.Suspended:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSuspended, "the pod is stopped"}
	case s.broken != "" && strings.Contains(template.Spec.Containers[0].Image, s.broken):
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, "image cannot be pulled"}
	case s.down[i.Name]:
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonPodNotReady, "the pod is down"}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonPodReady, "the pod runs"}
}

// readyVerdict says whether an Instance whose pod is so is Ready.
func readyVerdict(i *v1alpha1.Instance, pod verdict) verdict {
	if pod.status != metav1.ConditionTrue {
		return pod
	}
	for _, g := range i.Spec.ReadinessGates {
		if !meta.IsStatusConditionTrue(i.Status.Conditions, g) {
			return verdict{metav1.ConditionFalse, v1alpha1.ReasonGatesPending, "waiting for " + g}
		}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonReady, pod.message}
}

// writeInstanceStatus writes an Instance's status as the instance operator does. A write that
// fails because the Instance has changed is repeated by the event of that.
func (s *Stage) writeInstanceStatus(ctx context.Context, i *v1alpha1.Instance) {
	s.Helper()
	pod := s.podVerdict(i)
	status := v1alpha1.InstanceStatus{ObservedGeneration: i.Generation, Revision: i.Spec.Revision}
	switch runs := s.run(i); {
	case runs.uid != "":
		status.PodUID, status.PodIP, status.NodeName = runs.uid, podAddress(runs.uid), s.node(i.Name)
		if runs.madeFrom != runs.revision {
			status.MadeFrom = runs.madeFrom
		}
	case !i.Spec.Suspended:
		pod = verdict{metav1.ConditionFalse, v1alpha1.ReasonPodMissing, "the pod is being stopped"}
	}
	put := func(kind string, v verdict) {
		at := metav1.NewTime(time.Now().Truncate(time.Second))
		if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil && c.Status == v.status {
			at = c.LastTransitionTime
		}
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: i.Generation, LastTransitionTime: at})
	}
	put(v1alpha1.ConditionReady, readyVerdict(i, pod))
	put(v1alpha1.ConditionUpToDate, verdict{metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "everything matches the spec"})
	put(v1alpha1.ConditionPodReady, pod)
	if matchesStatus(i.Status, status) {
		return
	}
	_, err := apply.Writer{Client: s.Client, Owner: "instance"}.Status(ctx, i, status)
	s.tolerate(ctx, err)
}

// run starts the pod of an Instance, or stops it if it is to be restarted, and
// returns the pod that there is then.
func (s *Stage) run(i *v1alpha1.Instance) pod {
	s.Helper()
	template := Template(s, *i)
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.pods[i.UID]
	switch {
	case i.Spec.Suspended && pod.uid != "",
		pod.uid != "" && (pod.uid == i.Spec.StopPod || pod.revision != i.Spec.InPlaceFrom && revision.Difference(&pod.template, &template).Restart):
		s.stopped = append(s.stopped, i.Name)
		pod.uid = ""
	case i.Spec.Suspended:
	case pod.uid == "":
		pod.uid, pod.madeFrom = uuid.NewUUID(), i.Spec.Revision
	case pod.revision != i.Spec.Revision && pod.revision != i.Spec.InPlaceFrom && pod.madeFrom == pod.revision:
		pod.madeFrom = i.Spec.Revision // nothing differs but labels
	}
	pod.template, pod.revision = template, i.Spec.Revision
	s.pods[i.UID] = pod
	return pod
}

// podAddress gives every pod a loopback address of its own, where nothing listens.
func podAddress(pod types.UID) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(pod)) // a hash never fails to write
	n := sum.Sum32()
	return net.IPv4(127, byte(n>>16), byte(n>>8), byte(n)).String()
}

// node returns the node that the pod of an Instance runs on.
func (s *Stage) node(instance string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.nodes[instance], "node")
}

// StoppedInstances returns the Instances whose pods were stopped on purpose, in turn.
func (s *Stage) StoppedInstances() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stopped)
}

// ChangeStore changes what PD says of the store of an Instance.
func (s *Stage) ChangeStore(instance string, change func(*pd.Store)) {
	s.Helper()
	id := s.StoreID(instance)
	s.PD.Change(func(v *pd.View) {
		for n := range v.Stores {
			if v.Stores[n].ID == id {
				change(&v.Stores[n])
			}
		}
	})
}

// StoreID returns the ID of an Instance's store, once its operator has reported it.
func (s *Stage) StoreID(instance string) (id string) {
	s.Helper()
	require.Eventually(s, func() bool {
		member := s.Instance(instance).Status.Member
		if member != nil {
			id = member.ID
		}
		return member != nil
	}, machine.StretchWait(Timeout), Tick, "the store of %s", instance)
	return id
}

// matchesStatus reports whether a status says already what it should.
func matchesStatus(have, want v1alpha1.InstanceStatus) bool {
	for _, c := range want.Conditions {
		h := meta.FindStatusCondition(have.Conditions, c.Type)
		if h == nil || h.Status != c.Status || h.Reason != c.Reason || h.Message != c.Message || h.ObservedGeneration != c.ObservedGeneration {
			return false
		}
	}
	return have.ObservedGeneration == want.ObservedGeneration && have.Revision == want.Revision &&
		have.PodUID == want.PodUID && have.NodeName == want.NodeName && have.MadeFrom == want.MadeFrom
}
