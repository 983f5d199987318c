package reading

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// AskPD puts the last poll of the group's PD into the Snapshot, and has PD polled more
// often while the group is on its way to its spec.
func AskPD(env operator.Env, g v1alpha1.Group, s *observation.Snapshot, moving bool) {
	key := types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}
	env.PD.Watch(key, moving)
	if moving {
		env.PD.Kick(key)
	}
	view, known := env.PD.View(key)
	if !known {
		view.Err = fmt.Errorf("PD of PDGroup %s has not answered yet", key.Name)
	}
	s.PDPending = !known
	s.PD = view
}
