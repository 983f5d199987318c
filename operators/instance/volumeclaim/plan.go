package volumeclaim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Plan creates a claim or keeps the labels and size of an existing one.
func Plan(s *observation.Snapshot, p *planning.Plan, at int) {
	v := s.Volumes[at]
	switch block := Obstacle(s, v); {
	case block.Reason == v1alpha1.ReasonClaimLost && v.Claim != nil:
		// The user who restored it need not know our labels. With them every operator
		// sees that it is there.
		if labels := missingLabels(s, v); len(labels) > 0 {
			p.PatchClaims = append(p.PatchClaims, planning.ClaimPatch{Claim: v.Claim, Event: "ClaimUpdated", Why: "it has come in place of a lost one, without our labels",
				Body: planning.WithUID(map[string]any{"metadata": labelPatch(labels)}, v.Claim.UID)})
		}
	case block.Kind != step.KindDone:
	case v.Claim == nil:
		p.CreateClaims = append(p.CreateClaims, planning.ClaimCreation{Index: at, Claim: Render(s.Instance, s.Template, claimTemplate(v))})
	case IsReplaceable(s, v) && v.Recorded != "":
		p.Withdraw = append(p.Withdraw, v.Template.Name)
	case IsReplaceable(s, v):
		p.DeleteClaims = append(p.DeleteClaims, planning.ClaimDeletion{Claim: v.Claim, Unbound: true, Why: "it differs from the spec and was never bound"})
	default:
		planChanges(s, v, p)
	}
}

// claimTemplate is what a claim is made from. A VolumeAttributesClass that does not
// exist is left out: the claim would never get a volume, and gets the class later.
func claimTemplate(v observation.Volume) v1alpha1.VolumeClaimTemplate {
	out := v.Template
	if v.Classless {
		out.VolumeAttributesClassName = nil
	}
	return out
}

// planChanges brings a claim's labels, size and VolumeAttributesClass to the spec. Each is a
// patch of its own: what Kubernetes refuses of them keeps the claim from no other. A volume
// never shrinks, but a claim may ask for less again as long as its volume has not grown.
func planChanges(s *observation.Snapshot, v observation.Volume, p *planning.Plan) {
	patch := func(what, part string, body map[string]any) {
		p.PatchClaims = append(p.PatchClaims, planning.ClaimPatch{Claim: v.Claim, Event: "ClaimUpdated", Why: "its " + what + " differs from the spec",
			Body: planning.WithUID(map[string]any{part: body}, v.Claim.UID)})
	}
	if labels := missingLabels(s, v); len(labels) > 0 {
		patch("set of labels", "metadata", labelPatch(labels))
	}
	if v.Claim.Status.Phase == corev1.ClaimBound && storage.NeedsResize(v.Claim, v.Template.Storage) {
		patch("size", "spec", map[string]any{"resources": map[string]any{"requests": map[string]any{string(corev1.ResourceStorage): v.Template.Storage.String()}}})
	}
	if class, change := storage.NextAttributesClass(v.Claim, v.Template.VolumeAttributesClassName); change && !v.Classless && !v.Dropped {
		patch("VolumeAttributesClass", "spec", map[string]any{AttributesField: class})
	}
}

// labelPatch gives a claim labels, and with that of its cluster what keeps Argo CD from deleting it.
func labelPatch(labels map[string]any) map[string]any {
	out := map[string]any{"labels": labels}
	if labels[v1alpha1.LabelCluster] != nil {
		out["annotations"] = workload.KeptAnnotations()
	}
	return out
}

// missingLabels are those of a claim that it does not have yet, nil for one that it is
// to lose.
func missingLabels(s *observation.Snapshot, v observation.Volume) map[string]any {
	labels := map[string]any{}
	for key, value := range labelsOf(s.Instance, s.Template, v.Template.Name) {
		if v.Claim.Labels[key] != value {
			labels[key] = value
		}
	}
	if v.Claim.Labels[v1alpha1.LabelRetired] != "" && v.Claim.Annotations[v1alpha1.AnnotationRetired] == "" {
		labels[v1alpha1.LabelRetired] = nil // a user has taken it back
	}
	return labels
}

// AttributesField is the field of a claim's spec that names a
// VolumeAttributesClass.
const AttributesField = "volumeAttributesClassName"
