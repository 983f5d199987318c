package labelling

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// Labelling is one member's labels.
type Labelling struct {
	// Group of the member, and Instance, the name of its own.
	Group    types.NamespacedName
	Instance string
	// Pod of the member by UID, and since when it is ready: a member that
	// restarts in either sense has forgotten its labels.
	Pod, Since string
	// Host to reach the member at.
	Host string
	// Labels to give.
	Labels map[string]string
}

// FindMissing finds the running members that do not have the labels that they are to have. given
// is what each was last given, by Instance. A group that is deleted, paused or suspended is left
// alone. It is pure.
func FindMissing(g v1alpha1.Group, instances []*v1alpha1.Instance, given map[string]Labelling, labels func(*v1alpha1.Instance) map[string]string) []Labelling {
	if g.GetDeletionTimestamp() != nil || g.GetComponentSpec().Paused || g.GetComponentSpec().Suspended {
		return nil
	}
	var out []Labelling
	for _, i := range instances {
		since, ready := member.ReadySince(i)
		if !ready || i.DeletionTimestamp != nil {
			continue
		}
		next := Labelling{
			Group: types.NamespacedName{Namespace: g.GetNamespace(), Name: g.GetName()}, Instance: i.Name, Host: i.Status.PodIP, Labels: labels(i),
			Pod: string(i.Status.PodUID), Since: since.UTC().Format(time.RFC3339),
		}
		last := given[next.Instance]
		if len(next.Labels) == 0 || last.Pod == next.Pod && last.Since == next.Since && maps.Equal(next.Labels, last.Labels) {
			continue
		}
		out = append(out, next)
	}
	return out
}
