package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Snapshot is what an operator reads before it decides.
type Snapshot struct {
	// Instances of the group by slot, those being deleted included.
	Instances []*v1alpha1.Instance
	// Services of the group's names, whoever owns them.
	Services map[string]*corev1.Service
	// ConfigMaps of the group, by name.
	ConfigMaps map[string]bool
	// Revisions of the group.
	Revisions []appsv1.ControllerRevision
	// PDGroup that the group names, nil if there is none. A PDGroup's own
	// snapshot holds itself.
	PDGroup *v1alpha1.PDGroup
	// TiKVGroups of the same PDGroup; read only where a gate needs them.
	TiKVGroups []*v1alpha1.TiKVGroup
	// Nodes by name, their labels only.
	Nodes map[string]map[string]string
	// PD as last polled; its Err says why it is not known.
	PD pd.View
	// PDPending says that PD is being asked for the first time since the
	// operator started. The answer, or that there is none, wakes the group up;
	// until then nothing new is known and nothing should be reported.
	PDPending bool
}

// Wants says what to read beyond what every group needs.
type Wants struct {
	// TiKVGroups for the gate.
	TiKVGroups bool
	// Nodes for labels.
	Nodes bool
}

// Observe reads the snapshot of a group.
func Observe(ctx context.Context, env operator.Env, g v1alpha1.Group, wants Wants) (Snapshot, error) {
	var s Snapshot
	var err error
	if s.Instances, err = instances(ctx, env.Client, g); err != nil {
		return s, err
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
	if wants.TiKVGroups {
		var list v1alpha1.TiKVGroupList
		if err := env.Client.List(ctx, &list, client.InNamespace(g.GetNamespace())); err != nil {
			return s, fmt.Errorf("list TiKVGroups: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].PDGroupName() == g.PDGroupName() {
				s.TiKVGroups = append(s.TiKVGroups, &list.Items[i])
			}
		}
		slices.SortFunc(s.TiKVGroups, func(a, b *v1alpha1.TiKVGroup) int { return cmp.Compare(a.Name, b.Name) })
	}
	if wants.Nodes && env.ClusterScoped {
		if s.Nodes, err = nodes(ctx, env.Client, s.Instances); err != nil {
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

func instances(ctx context.Context, c client.Reader, g v1alpha1.Group) ([]*v1alpha1.Instance, error) {
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

// nodes reads the labels of the nodes that the Instances run on. A namespaced
// installation may not read nodes and goes without.
func nodes(ctx context.Context, c client.Reader, instances []*v1alpha1.Instance) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	for _, i := range instances {
		name := i.Status.NodeName
		if _, known := out[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		err := c.Get(ctx, types.NamespacedName{Name: name}, &node)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get Node %s: %w", name, err)
		default:
			out[name] = node.Labels
		}
	}
	return out, nil
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
