package refusal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/cause"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// isOfTwo reports whether a trial fails only because the old pod is there as well, or could not be
// made: a quota may be too small for both, a pod may have the name of the trial, a webhook may know no dry
// run. A webhook that denies the new pod, whatever its code, would deny it without the old one too.
func isOfTwo(err error) bool {
	noTrial := apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
	return storage.QuotaOf(err) != nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || noTrial
}

// FromTrial turns the answer to the trial of a pod that is to take the place of an old one into an outcome:
// Done if the old one may be stopped.
func FromTrial(s *observation.Snapshot, old, next *corev1.Pod, err error) step.Outcome {
	if q := storage.QuotaOf(err); q != nil && exceedsWithout(q, old) {
		o := OverQuota(s, next, q)
		o.Message = fmt.Sprintf("pod %s is left running, its replacement cannot be made: %s", old.Name, o.Message)
		return o
	}
	if err == nil || isOfTwo(err) {
		return step.Done()
	}
	return step.Fail(v1alpha1.ReasonPodRejected, fmt.Errorf("pod %s is left running, its replacement cannot be made: %w", old.Name, err))
}

// exceedsWithout reports whether a quota is too small for a new pod also once an old one is gone. What
// the old one takes is rather counted too high: it is stopped unless it is sure.
func exceedsWithout(q *storage.Quota, old *corev1.Pod) bool {
	used, limit := parseAmounts(q.Used), parseAmounts(q.Limit)
	for name, total := range parseAmounts(q.Adds) {
		now, known := used[name]
		most, limited := limit[name]
		total.Add(now)
		total.Sub(countResource(old, name))
		if known && limited && total.Cmp(most) > 0 {
			return true
		}
	}
	return false
}

// parseAmounts reads amounts as Kubernetes writes them: cpu=2,memory=4Gi.
func parseAmounts(text string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for item := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(item, "=")
		if n, err := resource.ParseQuantity(amount); err == nil {
			out[name] = n
		}
	}
	return out
}

// countResource adds up what a pod takes of what a quota counts under a name.
func countResource(pod *corev1.Pod, name string) resource.Quantity {
	if name == string(corev1.ResourcePods) || name == "count/pods" {
		return resource.MustParse("1")
	}
	kind, isLimit := strings.CutPrefix(name, "limits.")
	kind = strings.TrimPrefix(kind, "requests.")
	out := pod.Spec.Overhead[corev1.ResourceName(kind)]
	all := []corev1.ResourceRequirements{ptr.Deref(pod.Spec.Resources, corev1.ResourceRequirements{})}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.Resources)
	}
	for _, r := range all {
		list := r.Requests
		if isLimit {
			list = r.Limits
		}
		out.Add(list[corev1.ResourceName(kind)])
	}
	return out
}

// NewConflict is the conflict of a plan with what there is by now.
func NewConflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "instances"}, name, errors.New("it has changed meanwhile"))
}

// FromError turns an error, or none, into an outcome.
func FromError(err error) step.Outcome {
	if err == nil {
		return step.Done()
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, err)
}

// FromClaimError turns the API server's answer to a write of a claim into an outcome. It
// is asked again after a while: no watch reports when a quota grows.
func FromClaimError(s *observation.Snapshot, c *corev1.PersistentVolumeClaim, err error) step.Outcome {
	if why := storage.RefusalOf(c, s.Classes, observation.OriginOf(s).DescribeField("volumes"), err); why != nil {
		o := planning.Stall(why.Reason, "%s", why.Message)
		o.After = planning.RefusalRecheck
		return o
	}
	return FromWriteError(s, v1alpha1.ReasonClaimRejected, err)
}

// FromChangeError turns the API server's answer to a change of a claim into an outcome. LimitRanger judges
// the size at every change, whatever is changed.
func FromChangeError(s *observation.Snapshot, c planning.ClaimPatch, err error) step.Outcome {
	o := FromClaimError(s, c.Claim, fmt.Errorf("change claim %s: %w", c.Claim.Name, err))
	if o.Reason != v1alpha1.ReasonLimitRangeExceeded || c.Body["spec"] != nil {
		return o
	}
	o.Message = fmt.Sprintf("a LimitRange prevents every change of claim %s, which needs one (%s): raise the LimitRange's maximum: kubectl -n %s get limitrange", c.Claim.Name, c.Why, c.Claim.Namespace)
	if s.Instance.DeletionTimestamp == nil {
		return o // a pod may run on it
	}
	o.Message += fmt.Sprintf("; or delete the claim, if its data is not needed: kubectl -n %s delete pvc %s", c.Claim.Namespace, c.Claim.Name)
	return o
}

// OverQuota waits for a ResourceQuota to have room for a pod: a user makes it, or
// another pod that ends. How much of it is used is left out, others change that.
func OverQuota(s *observation.Snapshot, pod *corev1.Pod, q *storage.Quota) step.Outcome {
	o := planning.Wait("resourcequota", v1alpha1.ReasonPodRejected, "ResourceQuota %s is too small for pod %s (it adds %s, the limit is %s): see what uses it: kubectl -n %s describe resourcequota %s; raise it, or lower resources or replicas: %s",
		q.Name, pod.Name, q.Adds, q.Limit, pod.Namespace, q.Name, observation.OriginOf(s).Edit())
	o.After = planning.RefusalRecheck
	return o
}

// findSourceField is the field of a group that what the API server calls invalid comes from, so
// far as that shows: what a pod has from no other field it has from the overlay.
func findSourceField(reason string, err error) string {
	if reason == v1alpha1.ReasonClaimRejected {
		return "volumes"
	}
	text := err.Error()
	for _, other := range []struct{ at, field string }{
		{"spec.containers[0].volumeMounts", "volumes"}, {"metadata.labels", "labels"}, {"metadata.annotations", "annotations"},
	} {
		if strings.Contains(text, other.at) {
			return other.field
		}
	}
	for _, field := range []string{"affinity", "env", "imagePullSecrets", "nodeSelector", "priorityClassName", "resources", "securityContext", "serviceAccountName", "tolerations", "topologySpreadConstraints"} {
		if strings.Contains(text, "spec."+field) || strings.Contains(text, "spec.containers[0]."+field) {
			return field
		}
	}
	return "overlay"
}

// FromWriteError turns the API server's answer to a write into an outcome. What is
// invalid stays invalid until the spec changes; what is forbidden, by a quota
// for example, may be allowed later.
func FromWriteError(s *observation.Snapshot, reason string, err error) step.Outcome {
	switch {
	case apierrors.IsAlreadyExists(err), cause.IsUIDConflict(err):
		// It, or another one, came into being after we looked: look again.
		return step.Fail(reason, NewConflict(reason))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return planning.Stall(reason, "%v: correct the field that it comes from, such as %s", err, observation.OriginOf(s).DescribeField(findSourceField(reason, err)))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return planning.Wait("namespace", v1alpha1.ReasonDeleting, "the namespace is being deleted: nothing can be created in it")
	case apierrors.IsForbidden(err):
		return step.Fail(reason, err)
	}
	return FromError(err)
}
