package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// safe says why a member must not be stopped now; empty if it may be. A member
// that adds nothing to the quorum may always be replaced, so that a mistake can
// be undone whatever it broke.
func safe(s group.Snapshot, victim *v1alpha1.Instance) string {
	if member, listed := s.PD.Member(victim.Name); listed && member.Healthy && s.PD.Err == nil {
		return "its member is healthy, and this version does not restart healthy members: delete the Instance to restart it"
	}
	if group.InstanceServes(victim) {
		return "it is Ready, and this version does not restart members that serve: delete the Instance to restart it"
	}
	running := meta.IsStatusConditionTrue(victim.Status.Conditions, v1alpha1.ConditionPodReady)
	if running && meta.IsStatusConditionTrue(victim.Status.Conditions, v1alpha1.ConditionJoined) {
		// A slow moment must not cost a member that PD counts on.
		return "its pod runs and PD lists it, even if it is not healthy now: delete the Instance to restart it"
	}
	return ""
}
