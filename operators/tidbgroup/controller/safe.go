package controller

import (
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
)

// defaultSurge is how many servers there may be beyond spec.replicas by default.
const defaultSurge = 1

// maxSurge returns how many servers there may be beyond spec.replicas while
// others are restarted.
func maxSurge(g *v1alpha1.TiDBGroup) int32 { return ptr.Deref(g.Spec.MaxSurge, defaultSurge) }

// serversOf answers what the planner asks about the servers of a group. open says that
// one which is started now can serve.
func serversOf(g *v1alpha1.TiDBGroup, s snapshot, open gate.Result) stateless.Members {
	return stateless.Members{Group: g, Seen: s.Instances, MaxSurge: maxSurge(g), Open: open}
}
