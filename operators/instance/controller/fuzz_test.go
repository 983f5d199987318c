package controller

import (
	"encoding/json"
	"testing"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/hostile"
)

// P10, P12: whatever stands in an Instance, beside its pod and its claims and before
// there are any. An Instance asks no PD.
func FuzzAnInstance(f *testing.F) {
	hostile.Fuzz(f, "1", func(t *testing.T, attempt hostile.Attempt) {
		s := world(t)
		i := s.Instance
		if !hostile.CanMerge(&i.Spec, func() int32 { return 1 }, attempt) {
			return
		}
		if json.Valid([]byte(attempt.Config)) { // the API server takes nothing else
			i.Spec.PodTemplate.Raw = []byte(attempt.Config)
		}
		s.Template, s.TemplateErr = decodeTemplate(i.Spec.PodTemplate)
		hostile.Judge(t, v1alpha1.KindInstance, func() any {
			bare := &observation.Snapshot{Instance: i, Now: s.Now, Template: s.Template, TemplateErr: s.TemplateErr, Classes: s.Classes}
			for _, v := range i.Spec.VolumeClaimTemplates {
				bare.Volumes = append(bare.Volumes, observation.Volume{Template: v, Name: v.Name + "-" + i.Name})
			}
			for _, seen := range []*observation.Snapshot{s, bare} {
				found := reportStatus(seen, makePlan(seen), step.Done(), clock())
				i.Status.Conditions = found.after.Conditions
			}
			return i
		})
	})
}
