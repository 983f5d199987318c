package voting

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

const (
	// ReplacementTimeout is how long a deleted member stays for its replacement
	// to join. Then it goes without, if a majority stays: the new one may need its
	// place.
	ReplacementTimeout = 5 * time.Minute
	// electionTimeout is how long PD may be without a leader before the members
	// that do nothing for it count as stranded; an election takes some seconds.
	electionTimeout = 30 * time.Second
	// loadTimeout is for how long a restarted member is waited for that says it has not loaded the
	// regions: ten millions take five to ten minutes. Without use-region-storage of PD it never says
	// that it has.
	loadTimeout = 15 * time.Minute
)

// Voters is the group.Component of PD: its members vote, and nothing that is
// done to one of them may leave fewer than a majority of them healthy.
type Voters struct {
	g *v1alpha1.PDGroup
	s observation.Snapshot
}

// New returns the members of a group's PD, as they are seen.
func New(g *v1alpha1.PDGroup, s observation.Snapshot) Voters { return Voters{g, s} }

// isLoading reports that the running process of an Instance says that it has not loaded the regions.
func (v Voters) isLoading(i *v1alpha1.Instance) bool {
	said, asked := v.s.StatusPorts[i.Name]
	return asked && said.IsFrom(i) && said.State == statusport.Loading && v.s.PD.Bootstrapped && v.s.Now.Sub(said.Since.Time) < loadTimeout
}

// IsPodUnknown reports that it is unknown whether an Instance's pod runs: its node does
// not answer, or the pod could not be read.
func IsPodUnknown(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return member.IsUnreachable(i) || pod != nil && pod.Status == metav1.ConditionUnknown
}
