package storestate

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// DistrustPD says why what PD answered says nothing about the stores of a group;
// both are empty if it may be used. The answer must come from the very PD that
// the PDGroup stands for.
func DistrustPD(g v1alpha1.Group, s observation.Snapshot) (reason, message string) {
	switch {
	case s.PDGroup == nil:
		return v1alpha1.ReasonWaitingForPDGroup, fmt.Sprintf("PDGroup %s does not exist", g.PDGroupName())
	case s.PDGroup.Status.ClusterID == "":
		return v1alpha1.ReasonWaitingForPDGroup, fmt.Sprintf("PDGroup %s has no cluster ID yet", g.PDGroupName())
	case s.PD.Err != nil:
		return v1alpha1.ReasonPDUnreachable, s.PD.Err.Error()
	case s.PD.ClusterID == "":
		return v1alpha1.ReasonPDUnreachable, "PD has not been asked"
	case s.PD.ClusterID != s.PDGroup.Status.ClusterID:
		return v1alpha1.ReasonPDUnreachable, fmt.Sprintf("the PD that answers has cluster ID %s, but PDGroup %s has %s", s.PD.ClusterID, g.PDGroupName(), s.PDGroup.Status.ClusterID)
	}
	return "", ""
}
