package rollout

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// serviceRecord is how a Service was rendered, and what from.
type serviceRecord struct {
	// Inputs is the hash of the part of the spec that only Services are rendered from.
	Inputs      string             `json:"inputs"`
	Labels      map[string]string  `json:"labels,omitempty"`
	Annotations map[string]string  `json:"annotations,omitempty"`
	Spec        corev1.ServiceSpec `json:"spec"`
}

// KeptServices returns the Services to apply. While the spec that a Service was rendered
// from is the same, it is kept as it was rendered, so that another version of the operator
// changes none. Each carries the record of that in an annotation. stored says that the wanted
// revision of the pods is stored already: if it is not, the pods were edited, and the Services
// are rendered again, because they name ports of pods. difference is the first one to what this
// operator renders.
func KeptServices(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, stored bool) (services []*corev1.Service, difference string, err error) {
	raw, err := json.Marshal(map[string]any{"service": r.ServiceInputs, "peerService": g.GetComponentSpec().PeerService})
	if err != nil {
		return nil, "", fmt.Errorf("encode the spec of the Services: %w", err)
	}
	inputs, err := hashInputs(raw)
	if err != nil {
		return nil, "", err
	}
	for _, rendered := range r.Services {
		wanted := serviceRecord{inputs, rendered.Labels, rendered.Annotations, rendered.Spec}
		record := wanted
		if live := s.Services[rendered.Name]; stored && live != nil && workload.IsOwned(g, live) {
			var old serviceRecord
			// A record that cannot be read is not ours, and is replaced.
			if err := json.Unmarshal([]byte(live.Annotations[v1alpha1.AnnotationRendering]), &old); err == nil && old.Inputs == inputs {
				record = old
			}
		}
		text, err := json.Marshal(record)
		if err != nil {
			return nil, "", fmt.Errorf("encode Service %s: %w", rendered.Name, err)
		}
		if difference == "" && !equality.Semantic.DeepEqual(record, wanted) {
			if d := revision.FirstDifference(record, wanted); d != "" {
				difference = "Service " + rendered.Name + ": " + d
			}
		}
		kept := rendered.DeepCopy()
		kept.Labels, kept.Annotations, kept.Spec = record.Labels, map[string]string{v1alpha1.AnnotationRendering: string(text)}, record.Spec
		maps.Copy(kept.Annotations, record.Annotations)
		services = append(services, kept)
	}
	return services, difference, nil
}
