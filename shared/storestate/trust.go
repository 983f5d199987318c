package storestate

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// TrustPD says whether what PD answered concerns the stores of a group. The answer must
// come from the very PD that the PDGroup stands for.
func TrustPD(g v1alpha1.Group, s observation.Snapshot) verdict.Verdict {
	switch {
	case s.PDGroup == nil:
		return verdict.Refusef("PDGroup %s does not exist", g.PDGroupName())
	case s.PDGroup.Status.ClusterID == "":
		return verdict.Refusef("PDGroup %s has no cluster ID yet", g.PDGroupName())
	case s.PD.Err != nil:
		return verdict.Refuse(s.PD.Err.Error())
	case s.PD.ClusterID == "":
		return verdict.Refuse("PD has not been asked")
	case s.PD.ClusterID != s.PDGroup.Status.ClusterID:
		return verdict.Refusef("the PD that answers has cluster ID %s, but PDGroup %s has %s", s.PD.ClusterID, g.PDGroupName(), s.PDGroup.Status.ClusterID)
	}
	return verdict.Allow()
}

// DistrustReason is the reason of a condition for which TrustPD refuses.
func DistrustReason(s observation.Snapshot) string {
	if s.PDGroup == nil || s.PDGroup.Status.ClusterID == "" {
		return v1alpha1.ReasonWaitingForPDGroup
	}
	return v1alpha1.ReasonPDUnreachable
}
