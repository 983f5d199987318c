package observation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// Snapshot is what an operator reads before it decides.
type Snapshot struct {
	// Instances of the group by slot, those being deleted included.
	Instances []*v1alpha1.Instance
	// Overdue are the Instances that the instance operator should have looked at by now.
	Overdue map[types.UID]bool
	// Siblings are the Instances of other groups of the same kind and cluster.
	Siblings []*v1alpha1.Instance
	// ClusterInstances are all Instances of the cluster, while PD is to be rebuilt; else
	// nil.
	ClusterInstances []*v1alpha1.Instance
	// Services of the group's names, whatever owns them.
	Services map[string]*corev1.Service
	// ConfigMaps of the group, by name.
	ConfigMaps map[string]bool
	// Revisions of the group.
	Revisions []appsv1.ControllerRevision
	// Records remembers what they store; nil remembers nothing.
	Records *revision.Memory
	// Claims that exist, by the Instance that they are labelled with.
	Claims map[string][]metav1.ObjectMeta
	// ForeignClaims have names that the first PD members would use, and are not known to
	// be theirs; sorted. They are looked for until the cluster has been bootstrapped.
	ForeignClaims []string
	// RetiredSlots hold the claims of members that have left for good.
	RetiredSlots map[int32]bool
	// Budget is the PodDisruptionBudget of the group's component; nil if there is
	// none.
	Budget *policyv1.PodDisruptionBudget
	// Lease is the right to disrupt a member of the cluster. HolderLost says that its
	// holder does not exist any more, HolderRecreated that it does not, but is created
	// again.
	Lease           lease.State
	HolderLost      bool
	HolderRecreated bool
	// Now is when the snapshot was taken.
	Now time.Time
	// Hold is for how long a member's restart has not been safe.
	Hold Hold
	// Image that the operator runs from, with the programs that it brings into pods;
	// empty if it does not know.
	Image string
	// PDGroup that the group names, nil if there is none. A PDGroup's own
	// snapshot holds itself.
	PDGroup *v1alpha1.PDGroup
	// Groups of the same PDGroup, of every kind, this one included.
	Groups []v1alpha1.Group
	// TiKVGroups among them.
	TiKVGroups []*v1alpha1.TiKVGroup
	// Nodes by name, their labels only.
	Nodes map[string]map[string]string
	// Cordoned are the nodes of Instances on which nothing new is to start, if another
	// one takes their pods.
	Cordoned map[string]bool
	// SchedulableNodes are all nodes on which something new may start, their labels, taints and
	// size only; nil if no nodes are read.
	SchedulableNodes []corev1.Node
	// LostNodes are, by Instance, the nodes that a volume of its pod can be used on,
	// where none of them exists any more and the pod therefore finds no place.
	LostNodes map[string]string
	// Certificates are the Secrets with certificates that the group uses, as they were read.
	Certificates certificate.Secrets
	// Running is what running members were last seen to run with, by Instance, of
	// those that may run with something else than their files say.
	Running map[string]RunningConfig
	// RunningPending says that some of these are being asked. The answer, or that there is
	// none, wakes the group up. Until then nothing new is known, and nothing should be
	// reported.
	RunningPending bool
	// StatusPorts are the answers of the status ports of members, by Instance, of those
	// that were asked, Siblings included. StatusPortsPending is as RunningPending.
	StatusPorts        map[string]member.StatusPortAnswer
	StatusPortsPending bool
	// PD as last polled; its Err says why it is not known.
	PD pd.View
	// PDPending says that PD is being asked for the first time since the
	// operator started. The answer, or that there is none, wakes the group up;
	// until then nothing new is known and nothing should be reported.
	PDPending bool
	// Regions that have too few peers, or a peer that is down or pending, as PD has just
	// answered. RegionsKnown says that it was asked, RegionsErr why it did not answer.
	Regions      []pd.Region
	RegionsKnown bool
	RegionsErr   error
	// Answer is what PD has just answered to the Question of a plan from this
	// snapshot; nil if it was not asked.
	Answer *RegionAnswer
	// Flushed are the pods of stores that were asked to write their log backups out
	// and have done it, or will not, and since when they were being prepared to stop.
	Flushed map[types.UID]time.Time
}

// Instance returns the Instance of a name, nil if there is none.
func (s Snapshot) Instance(name string) *v1alpha1.Instance {
	at := slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == name })
	if at < 0 {
		return nil
	}
	return s.Instances[at]
}

// WithSiblings returns the Instances of the group and its Siblings.
func (s Snapshot) WithSiblings() []*v1alpha1.Instance { return slices.Concat(s.Instances, s.Siblings) }

// IsClaimDeleted reports whether a claim of an Instance is being deleted: its pod is not stopped with the
// Instance kept, as the claim would go with it.
func (s Snapshot) IsClaimDeleted(instance string) bool {
	return slices.ContainsFunc(s.Claims[instance], func(c metav1.ObjectMeta) bool { return c.DeletionTimestamp != nil })
}

// Find returns the Instance or Sibling of a name, nil if there is none.
func (s Snapshot) Find(name string) *v1alpha1.Instance {
	if own := s.Instance(name); own != nil {
		return own
	}
	return Snapshot{Instances: s.Siblings}.Instance(name)
}
