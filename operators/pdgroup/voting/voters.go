package voting

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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
)

// Voters is the group.Component of PD: its members vote, and nothing that is
// done to one of them may leave fewer than a majority of them healthy.
type Voters struct {
	g *v1alpha1.PDGroup
	s observation.Snapshot
}

// New returns the members of a group's PD, as they are seen.
func New(g *v1alpha1.PDGroup, s observation.Snapshot) Voters { return Voters{g, s} }

// IsPodUnknown reports that it is unknown whether an Instance's pod runs: its node does
// not answer, or the pod could not be read.
func IsPodUnknown(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return member.IsUnreachable(i) || pod != nil && pod.Status == metav1.ConditionUnknown
}
