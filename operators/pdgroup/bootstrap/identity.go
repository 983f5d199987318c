package bootstrap

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// recheckPeriod is after how long PD is looked at again although its poller said
// nothing.
const recheckPeriod = time.Minute

// IsBootstrapped reports whether PD has a cluster ID that we know of. It never
// goes back: the ID in status is written once.
func IsBootstrapped(g *v1alpha1.PDGroup, s observation.Snapshot) bool { return ClusterID(g, s) != "" }

// ClusterID returns the cluster ID in status or, if there is none yet, that of
// a PD that has a quorum.
func ClusterID(g *v1alpha1.PDGroup, s observation.Snapshot) string {
	if g.Status.ClusterID != "" {
		return g.Status.ClusterID
	}
	if s.PD.Err == nil && s.PD.HasQuorum() {
		return s.PD.ClusterID
	}
	return ""
}

// OwnPD says whether the PD that answers is the one of this group, as far as is known.
func OwnPD(g *v1alpha1.PDGroup, s observation.Snapshot) verdict.Verdict {
	if g.Status.ClusterID == "" || s.PD.Err != nil || s.PD.ClusterID == "" || s.PD.ClusterID == g.Status.ClusterID {
		return verdict.Allow()
	}
	return verdict.Refusef("PD answers with cluster ID %s, but this group's is %s: a PD of another cluster answers on its name; stop it, or restore the claims of this group's members", s.PD.ClusterID, g.Status.ClusterID)
}

// IsPDUsable reports whether what PD answered is this group's PD.
func IsPDUsable(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	return s.PD.Err == nil && OwnPD(g, s).IsAllowed()
}

// CheckVanished says that Instances which may have bootstrapped the cluster are gone
// before its ID was known; Done if none is. The others may still have a majority,
// and then PD tells its ID by itself.
func CheckVanished(g *v1alpha1.PDGroup, s observation.Snapshot) step.Outcome {
	if IsBootstrapped(g, s) {
		return step.Done()
	}
	lost := FindRemoved(g.Status.InitialMembers, s.Instances)
	left := len(g.Status.InitialMembers) - len(lost)
	switch {
	case len(lost) == 0:
		return step.Done()
	case left >= pd.Majority(len(g.Status.InitialMembers)):
		return step.Wait("PD", recheckPeriod, v1alpha1.ReasonInitialMembersLost, fmt.Sprintf("Instance %s is gone and may have bootstrapped the cluster with the others: waiting for PD to report its cluster ID", strings.Join(lost, ", ")))
	}
	return step.Stall(v1alpha1.ReasonInitialMembersLost, fmt.Sprintf("Instances %s were lost before PD's cluster ID was known; starting them again could bootstrap a second cluster: %sdelete the PDGroup and create it again, "+
		"it uses the claims that are left: kubectl -n %s delete pdgroup %s", strings.Join(lost, ", "), origin.KeepClaims(g), g.Namespace, g.Name))
}
