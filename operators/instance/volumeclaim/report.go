package volumeclaim

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Status reports every volume and records the claim that a pod may be
// started with.
func Status(s *observation.Snapshot, p *planning.Plan) []v1alpha1.VolumeStatus {
	var out []v1alpha1.VolumeStatus
	for _, v := range s.Volumes {
		status := v1alpha1.VolumeStatus{Name: v.Template.Name, ClaimName: v.Name, ClaimUID: v.Recorded, Phase: "Missing"}
		if claim := v.Claim; claim != nil && mayUseClaim(s.Instance, claim, v.Recorded) {
			status.Phase = string(cmp.Or(claim.Status.Phase, corev1.ClaimPending))
			if capacity, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
				status.Capacity = &capacity
			}
			if requested, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
				status.Requested = &requested
			}
			if claim.Spec.StorageClassName != nil {
				status.StorageClassName = *claim.Spec.StorageClassName
			}
			status.VolumeAttributesClassName = storage.AttributesClass(claim)
			status.Change = storage.ProgressOf(claim).Change
			if isClassChanged(v) {
				status.Change = v1alpha1.ReasonClaimRejected
			}
			status.PersistentVolume, status.NodeBound = v.Bound, v.Place.Bound
			status.Nodes, status.NodeSelectors = v.Place.Nodes, v.Place.NodeSelectors
			switch {
			case slices.Contains(p.Withdraw, v.Template.Name):
				status.ClaimUID = ""
			case isRecordable(s, v):
				status.ClaimUID = claim.UID
			}
		}
		switch {
		case v.Dropped: // first, because it is known from here
			status.Change = v1alpha1.ReasonVolumeAttributesUnsupported
		case isRefusal(v.Refused):
			status.Change = v.Refused
		case v.Classless:
			status.Change = v1alpha1.ReasonVolumeAttributesClassMissing
		}
		out = append(out, status)
	}
	return out
}

// RecordsClaims reports whether a status records the claim of each volume, and the one before did not.
func RecordsClaims(before, after []v1alpha1.VolumeStatus) bool {
	claims := func(volumes []v1alpha1.VolumeStatus) (out []types.UID) {
		for _, v := range volumes {
			out = append(out, v.ClaimUID)
		}
		return out
	}
	now := claims(after)
	return !slices.Contains(now, "") && !slices.Equal(claims(before), now)
}

// isRefusal reports whether a reason is one for which the API server does not take
// a claim.
func isRefusal(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded}, reason)
}

// ChangeOutcome says how far a volume that serves is from what its claim asks for.
func ChangeOutcome(s *observation.Snapshot, v observation.Volume) step.Outcome {
	if v.Claim == nil || !mayUseClaim(s.Instance, v.Claim, v.Recorded) {
		return step.Done()
	}
	progress, namespace := storage.ProgressOf(v.Claim), s.Instance.Namespace
	wanted, has := v.Claim.Spec.Resources.Requests.Storage(), v.Claim.Status.Capacity.Storage()
	switch {
	case v.Dropped:
		return planning.Stall(v1alpha1.ReasonVolumeAttributesUnsupported, "the API server does not know VolumeAttributesClasses in claims (Kubernetes 1.34 does): take volumeAttributesClassName out of %s, or upgrade Kubernetes and set it again", observation.OriginOf(s).DescribeField("volumes"))
	case v.Classless:
		o := planning.Wait("volumeattributesclass", v1alpha1.ReasonVolumeAttributesClassMissing, "VolumeAttributesClass %s of claim %s does not exist: create it, or name another in %s; there are: kubectl get volumeattributesclass",
			*v.Template.VolumeAttributesClassName, v.Name, observation.OriginOf(s).DescribeField("volumes"))
		o.After = planning.Recheck // nothing watches them
		return o
	case progress.Change == string(corev1.PersistentVolumeClaimVolumeModifyVolumeError):
		return planning.Wait("claim", v1alpha1.ReasonVolumeChangeFailed, "claim %s cannot get VolumeAttributesClass %s (%s): kubectl -n %s describe pvc %s; or set volumeAttributesClassName back in %s",
			v.Name, *v.Claim.Spec.VolumeAttributesClassName, progress.Change, namespace, v.Name, observation.OriginOf(s).DescribeField("volumes"))
	case progress.Change == string(corev1.PersistentVolumeClaimVolumeModifyingVolume):
		return planning.Wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s must get VolumeAttributesClass %s: its storage driver has not applied it yet: kubectl -n %s describe pvc %s",
			v.Name, *v.Claim.Spec.VolumeAttributesClassName, namespace, v.Name)
	case progress.Failed:
		return planning.Wait("claim", v1alpha1.ReasonVolumeChangeFailed, "claim %s cannot grow to %s (%s), and Kubernetes keeps trying: kubectl -n %s describe pvc %s; or set storage back, to more than %s, in %s",
			v.Name, wanted, progress.Change, namespace, v.Name, has, observation.OriginOf(s).DescribeField("volumes"))
	case progress.Change == string(corev1.PersistentVolumeClaimFileSystemResizePending):
		return planning.Wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s has grown to %s, but the kubelet has not grown its file system yet; if the driver does that only when a pod starts: kubectl -n %s annotate instance %s %s=$(date +%%s) --overwrite",
			v.Name, wanted, namespace, s.Instance.Name, v1alpha1.AnnotationRestart)
	case progress.Change != "":
		return planning.Wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s asks for %s and has %s: its storage driver has to grow it: kubectl -n %s describe pvc %s", v.Name, wanted, has, namespace, v.Name)
	}
	return step.Done()
}

// isRecordable says whether the claim that exists is the one to start a pod with.
func isRecordable(s *observation.Snapshot, v observation.Volume) bool {
	if s.Instance.DeletionTimestamp != nil && !observation.IsDraining(s) {
		return false
	}
	if s.Instance.Spec.Paused || (v.Recorded == "" && IsReplaceable(s, v)) {
		return false
	}
	return Obstacle(s, v).Kind == step.KindDone
}

// Outcome says what is wrong with the volumes, the worst first.
func Outcome(s *observation.Snapshot, acted step.Outcome) step.Outcome {
	var all []step.Outcome
	for _, v := range s.Volumes {
		all = append(all, Obstacle(s, v))
		switch {
		case v.Claim == nil && isRefusal(acted.Reason):
			all = append(all, acted)
		case v.Claim == nil && s.TemplateErr != nil:
			all = append(all, planning.Wait("instance", v1alpha1.ReasonInvalidSpec, "claim %s is not created: spec.podTemplate is invalid", v.Name))
		case v.Claim == nil:
			all = append(all, planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s does not exist yet", v.Name))
		case v.Claim.Status.Phase != corev1.ClaimBound:
			all = append(all, waitForVolume(s, v))
		}
	}
	return step.Worst(all...)
}

// Summary says of claims that all is well.
func Summary(s *observation.Snapshot) string {
	if len(s.Volumes) == 0 {
		return "it has no volumes"
	}
	var claims []string
	for _, v := range s.Volumes {
		claims = append(claims, v.Name)
	}
	return "bound: " + strings.Join(claims, ", ")
}
