package stateless

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// stateServing is the state of a member that serves, as an Instance shows it.
const stateServing = "Serving"

// Report reports the member of every Instance. The database keeps no membership of them:
// one serves when its readiness probe says so, and leaves on request. drained are
// those that are being removed, and port is the one that clients connect to.
func Report(g v1alpha1.Group, instances []*v1alpha1.Instance, drained map[string]bool, port int32, now time.Time) []groupstatus.Member {
	var out []groupstatus.Member
	for _, i := range instances {
		set := conditions.NewMember(i.Status.Conditions, now)
		switch {
		case drained[i.Name], member.HasLeft(i) && !member.HasMemberFinalizer(i): // it was released, and its pod stops
			set.MarkTrue(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, "no other member depends on it: it drains as it stops")
		case meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionDrained) != nil:
			set.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, "the member stays")
		}
		state := v1alpha1.MemberStarting
		if c := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady); c != nil && c.Status == "True" {
			state = stateServing
		}
		out = append(out, groupstatus.Member{Instance: i, Conditions: set.List(), Status: &v1alpha1.MemberStatus{
			Name: i.Name, State: state,
			Address: names.HostPort(names.PodHost(i.Name, g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain), port),
		}})
	}
	return out
}
