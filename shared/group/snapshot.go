package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Snapshot is what an operator reads before it decides.
type Snapshot struct {
	// Instances of the group by slot, those being deleted included.
	Instances []*v1alpha1.Instance
	// Silent are the Instances that the instance operator should have looked at by now.
	Silent map[types.UID]bool
	// Peers are the Instances of other groups of the same kind and cluster.
	Peers []*v1alpha1.Instance
	// Served are the Instances of everything that a PDGroup's PD serves, while PD is
	// to be rebuilt; else nil.
	Served []*v1alpha1.Instance
	// Services of the group's names, whoever owns them.
	Services map[string]*corev1.Service
	// ConfigMaps of the group, by name.
	ConfigMaps map[string]bool
	// Revisions of the group.
	Revisions []appsv1.ControllerRevision
	// Claims that exist, by the Instance that they are labelled with.
	Claims map[string][]metav1.ObjectMeta
	// StrangeClaims stand under names that members would found a PD cluster on, and are
	// not known to be theirs; sorted. They are looked for while nobody has begun to.
	StrangeClaims []string
	// RetiredSlots hold the claims of members that have left for good.
	RetiredSlots map[int32]bool
	// Budget is the PodDisruptionBudget of the group's component; nil if there is
	// none.
	Budget *policyv1.PodDisruptionBudget
	// Lease is the right to disrupt a member of the cluster; HolderLost says that
	// its holder does not exist any more, HolderReturns that it does not but is made
	// anew.
	Lease         lease.State
	HolderLost    bool
	HolderReturns bool
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
	// Cordoned are the nodes of Instances on which nothing new is to start, if
	// there is another one on which it may.
	Cordoned map[string]bool
	// Open are all nodes on which something new may start, their labels and taints
	// only; nil if no nodes are read.
	Open []corev1.Node
	// LostNodes are, by Instance, the nodes that a volume of its pod can be used on,
	// where none of them exists any more and the pod therefore finds no place.
	LostNodes map[string]string
	// Running is what running members were last seen to run with, by Instance, of
	// those that may run with something else than their files say.
	Running map[string]Running
	// RunningPending says that some of these are being asked. The answer, or that
	// there is none, wakes the group up; until then nothing new is known and nothing
	// should be reported.
	RunningPending bool
	// Said is what the status ports of members said of these, by Instance, of those that
	// were asked; Peers are among them. SaidPending is as RunningPending.
	Said        map[string]Said
	SaidPending bool
	// PD as last polled; its Err says why it is not known.
	PD pd.View
	// PDPending says that PD is being asked for the first time since the
	// operator started. The answer, or that there is none, wakes the group up;
	// until then nothing new is known and nothing should be reported.
	PDPending bool
	// Regions that have a peer too few or one that is not what it should be, as PD
	// has just said. RegionsKnown says that it was asked, RegionsErr why it did not
	// answer.
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

// Everyone returns the Instances of the group and its Peers.
func (s Snapshot) Everyone() []*v1alpha1.Instance { return slices.Concat(s.Instances, s.Peers) }

// Anyone returns the Instance or Peer of a name, nil if there is none.
func (s Snapshot) Anyone(name string) *v1alpha1.Instance {
	if own := s.Instance(name); own != nil {
		return own
	}
	return Snapshot{Instances: s.Peers}.Instance(name)
}

// Observe reads the snapshot of a group.
func Observe(ctx context.Context, env operator.Env, g v1alpha1.Group) (Snapshot, error) {
	s := Snapshot{Now: env.Now(), Image: env.Image}
	var err error
	if s.Instances, err = Instances(ctx, env.Client, g); err != nil {
		return s, err
	}
	s.Silent = map[types.UID]bool{}
	for _, i := range s.Instances {
		s.Silent[i.UID] = env.Waits.Overdue(i, i.Status.Conditions, s.Now)
	}
	if s.Services, err = services(ctx, env.Client, g); err != nil {
		return s, err
	}
	if s.ConfigMaps, err = configMaps(ctx, env.Client, g); err != nil {
		return s, err
	}
	var revisions appsv1.ControllerRevisionList
	if err := env.Client.List(ctx, &revisions, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return s, fmt.Errorf("list ControllerRevisions of %s: %w", g.GetName(), err)
	}
	// Those of a group of the same name that was deleted are about to go.
	s.Revisions = slices.DeleteFunc(revisions.Items, func(r appsv1.ControllerRevision) bool { return !Ours(g, &r) })
	if s.PDGroup, err = pdGroup(ctx, env.Client, g); err != nil {
		return s, err
	}
	if err := ObserveClaims(ctx, env.Client, g, &s); err != nil {
		return s, err
	}
	if err := restoredClaims(ctx, env.Live, s); err != nil {
		return s, err
	}
	if s.Budget, err = budget(ctx, env.Client, g); err != nil {
		return s, err
	}
	if err := observeLease(ctx, env, g, &s); err != nil {
		return s, err
	}
	if err := observeGroups(ctx, env.Client, g, &s); err != nil {
		return s, err
	}
	if s.Peers, err = peers(ctx, env.Client, g); err != nil {
		return s, err
	}
	if env.ClusterScoped {
		if s.LostNodes, err = lostNodes(ctx, env, s); err != nil {
			return s, err
		}
		if err := observeNodes(ctx, env.Client, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// AskPD puts the last poll of the group's PD into the snapshot, and has PD
// polled more often while the group is on the move.
func AskPD(env operator.Env, g v1alpha1.Group, s *Snapshot, moving bool) {
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

// observeGroups reads the groups that make the cluster.
func observeGroups(ctx context.Context, c client.Reader, g v1alpha1.Group, s *Snapshot) error {
	for _, list := range []client.ObjectList{&v1alpha1.PDGroupList{}, &v1alpha1.TiFlashGroupList{}, &v1alpha1.TiKVGroupList{}, &v1alpha1.TiDBGroupList{}} {
		found, err := groupsOf(ctx, c, g, list)
		if err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b v1alpha1.Group) int { return cmp.Compare(a.GetName(), b.GetName()) })
		for _, other := range found {
			s.Groups = append(s.Groups, other)
			if tikv, ok := other.(*v1alpha1.TiKVGroup); ok {
				s.TiKVGroups = append(s.TiKVGroups, tikv)
			}
		}
	}
	return nil
}

// groupsOf reads the groups of a kind that share a group's PD.
func groupsOf(ctx context.Context, c client.Reader, g v1alpha1.Group, list client.ObjectList) ([]v1alpha1.Group, error) {
	out, err := Select(ctx, c, g.GetNamespace(), list, func(other v1alpha1.Group) bool { return other.PDGroupName() == g.PDGroupName() })
	if err != nil {
		return nil, fmt.Errorf("list groups of PDGroup %s: %w", g.PDGroupName(), err)
	}
	return out, nil
}

// Select reads the groups of a kind and a namespace that are wanted. list is an
// empty list of the kind. The namespace may hold hundreds of others: they are
// looked at in the cache, and only what is wanted is copied.
func Select(ctx context.Context, c client.Reader, namespace string, list client.ObjectList, wanted func(v1alpha1.Group) bool) ([]v1alpha1.Group, error) {
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []v1alpha1.Group
	for _, g := range v1alpha1.GroupsIn(list) {
		if !wanted(g) {
			continue
		}
		if copied, ok := g.DeepCopyObject().(v1alpha1.Group); ok {
			out = append(out, copied)
		}
	}
	return out, nil
}

// observeLease reads the cluster's Lease, and whether its holder still exists.
func observeLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s *Snapshot) error {
	var err error
	if s.Lease, err = leaseclient.Read(ctx, env.Client, g.GetNamespace(), g.PDGroupName()); err != nil || s.Lease.Free() {
		return err
	}
	if slices.ContainsFunc(s.Instances, s.Lease.HeldBy) {
		return nil
	}
	if lost, err := leaseclient.Lost(ctx, env.Client, g.GetNamespace(), s.Lease.Holder); err != nil || !lost {
		return err
	}
	// What a cache does not show may still be there.
	if lost, err := leaseclient.Lost(ctx, env.Live, g.GetNamespace(), s.Lease.Holder); err != nil || !lost {
		return err
	}
	s.HolderReturns, err = leaseclient.Returns(ctx, env.Live, g.GetNamespace(), s.Lease)
	s.HolderLost = err == nil && !s.HolderReturns
	return err
}

// ObserveClaims reads the claims of a group's members into a snapshot, and which
// slots are not filled because of them.
func ObserveClaims(ctx context.Context, c client.Reader, g v1alpha1.Group, s *Snapshot) error {
	var err error
	if s.Claims, err = claims(ctx, c, g); err == nil {
		s.RetiredSlots = retiredSlots(g, s.Claims)
	}
	return err
}

// claims reads the claims of a group's members. They are read by their metadata
// only, and never written.
func claims(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string][]metav1.ObjectMeta, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	if err := c.List(ctx, list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list claims of %s: %w", g.GetName(), err)
	}
	out := map[string][]metav1.ObjectMeta{}
	for _, claim := range list.Items {
		instance := claim.Labels[v1alpha1.LabelInstance]
		out[instance] = append(out[instance], claim.ObjectMeta)
	}
	return out, nil
}

// restoredClaims adds what has come in place of the lost claims of Instances that
// are being deleted: whether their data is back decides what becomes of their
// members, and a claim that has just been restored may not carry our labels yet.
func restoredClaims(ctx context.Context, live client.Reader, s Snapshot) error {
	for _, i := range s.Instances {
		if i.DeletionTimestamp == nil || !ClaimLost(i) {
			continue
		}
		for _, t := range i.Spec.VolumeClaimTemplates {
			name := names.Claim(t.Name, i.Name)
			if slices.ContainsFunc(s.Claims[i.Name], func(c metav1.ObjectMeta) bool { return c.Name == name }) {
				continue
			}
			claim, err := liveClaim(ctx, live, i, t.Name)
			switch {
			case err != nil:
				return err
			case claim != nil && (claim.Labels[v1alpha1.LabelInstance] == "" || claim.Labels[v1alpha1.LabelInstance] == i.Name):
				s.Claims[i.Name] = append(s.Claims[i.Name], claim.ObjectMeta)
			}
		}
	}
	return nil
}

// liveClaim reads the metadata of an Instance's claim of a volume from the API server,
// nil if there is none.
func liveClaim(ctx context.Context, live client.Reader, i *v1alpha1.Instance, volume string) (*metav1.PartialObjectMetadata, error) {
	name := names.Claim(volume, i.Name)
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	err := live.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get claim %s: %w", name, err)
	}
	return claim, nil
}

// retiredSlots returns which slots have a claim of a former member.
func retiredSlots(g v1alpha1.Group, claims map[string][]metav1.ObjectMeta) map[int32]bool {
	out := map[int32]bool{}
	for instance, list := range claims {
		slot, ok := names.Slot(g.GetName(), instance)
		if ok && slices.ContainsFunc(list, func(c metav1.ObjectMeta) bool { return c.Annotations[v1alpha1.AnnotationRetired] != "" }) {
			out[slot] = true
		}
	}
	return out
}

func budget(ctx context.Context, c client.Reader, g v1alpha1.Group) (*policyv1.PodDisruptionBudget, error) {
	var out policyv1.PodDisruptionBudget
	err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: BudgetName(g)}, &out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PodDisruptionBudget %s: %w", BudgetName(g), err)
	}
	return &out, nil
}

// Instances reads the Instances of a group by slot, those being deleted included.
func Instances(ctx context.Context, c client.Reader, g v1alpha1.Group) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	if err := c.List(ctx, &list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list Instances of %s: %w", g.GetName(), err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Kind == g.GroupKind() && list.Items[i].Spec.Group.Name == g.GetName() {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	return out, nil
}

// peers reads the Instances of the other groups of a group's kind in its cluster,
// those of groups that are gone already included.
func peers(ctx context.Context, c client.Reader, g v1alpha1.Group) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	cluster := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: g.Component(), v1alpha1.LabelCluster: g.PDGroupName()}
	// The group's own are among them, and need no second copy.
	if err := c.List(ctx, &list, client.InNamespace(g.GetNamespace()), cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Instances of PDGroup %s: %w", g.PDGroupName(), err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Name != g.GetName() {
			out = append(out, list.Items[i].DeepCopy())
		}
	}
	return out, nil
}

func services(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string]*corev1.Service, error) {
	out := map[string]*corev1.Service{}
	for _, name := range []string{g.GetName(), names.PeerService(g.GetName())} {
		var s corev1.Service
		err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: name}, &s)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get Service %s: %w", name, err)
		default:
			out[name] = &s
		}
	}
	return out, nil
}

// configMaps reads which ConfigMaps exist; their content is named by their name
// and immutable, so that their metadata is all that is ever read.
func configMaps(ctx context.Context, c client.Reader, g v1alpha1.Group) (map[string]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list ConfigMaps of %s: %w", g.GetName(), err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		if Ours(g, &list.Items[i]) {
			out[list.Items[i].Name] = true
		}
	}
	return out, nil
}

func pdGroup(ctx context.Context, c client.Reader, g v1alpha1.Group) (*v1alpha1.PDGroup, error) {
	if own, ok := g.(*v1alpha1.PDGroup); ok {
		return own, nil
	}
	var out v1alpha1.PDGroup
	err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}, &out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PDGroup %s: %w", g.PDGroupName(), err)
	}
	return &out, nil
}

// observeNodes reads the labels of the nodes that the Instances run on, which of
// them are cordoned, and on which something may start. A namespaced installation may
// not read nodes and goes without.
func observeNodes(ctx context.Context, c client.Reader, s *Snapshot) error {
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	s.Nodes, s.Cordoned, s.Open = map[string]map[string]string{}, map[string]bool{}, []corev1.Node{}
	for _, node := range list.Items {
		if !node.Spec.Unschedulable {
			s.Open = append(s.Open, node)
		}
		if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Status.NodeName == node.Name }) {
			continue
		}
		s.Nodes[node.Name] = node.Labels
		if node.Spec.Unschedulable {
			s.Cordoned[node.Name] = true
		}
	}
	if len(s.Open) == 0 {
		clear(s.Cordoned)
	}
	return nil
}

// lostNodes finds the pods that find no place because a volume of theirs was on a
// node which is gone, with all others that it could be used on. Who deletes a Node
// says that it never comes back.
func lostNodes(ctx context.Context, env operator.Env, s Snapshot) (map[string]string, error) {
	out := map[string]string{}
	for _, i := range s.Instances {
		pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
		if pod == nil || pod.Reason != v1alpha1.ReasonPodUnschedulable {
			continue
		}
		for _, v := range i.Status.Volumes {
			gone := len(v.Nodes) > 0
			for _, name := range v.Nodes {
				there, err := nodeExists(ctx, env, name)
				if err != nil {
					return nil, err
				}
				gone = gone && !there
			}
			if gone {
				out[i.Name] = strings.Join(v.Nodes, ", ")
			}
		}
	}
	return out, nil
}

// nodeExists reports whether there is a node of a name, or of a host name, which
// may be another one. What a cache does not show may still be there.
func nodeExists(ctx context.Context, env operator.Env, name string) (bool, error) {
	err := env.Find(ctx, client.ObjectKey{Name: name}, &corev1.Node{})
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return false, fmt.Errorf("get Node %s: %w", name, err)
		}
		return true, nil
	}
	var list corev1.NodeList
	if err := env.Live.List(ctx, &list, client.MatchingLabels{corev1.LabelHostname: name}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Nodes of host name %s: %w", name, err)
	}
	return len(list.Items) > 0, nil
}

// Moving reports whether a group is on its way to its spec, so that PD is worth
// asking often. A paused or suspended group stays where it is.
func Moving(g v1alpha1.Group) bool {
	wanted := []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate}
	switch spec := g.GetComponentSpec(); {
	case spec.Paused:
		return false
	case spec.Suspended:
		wanted = wanted[1:]
	}
	for _, t := range wanted {
		c := gate.Current(g.GetGroupStatus().Conditions, g.GetGeneration(), t)
		if c == nil || c.Status != metav1.ConditionTrue {
			return true
		}
	}
	return false
}
