package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

// State is how an object is doing, as a tree shows it.
type State int

const (
	// Waiting works towards its spec or waits for another object.
	Waiting State = iota
	// Good is Ready and UpToDate.
	Good
	// Serving is Ready but not UpToDate.
	Serving
	// Stuck needs a user.
	Stuck
)

// Node is one line of a tree and what stands below it.
type Node struct {
	// Kind and Name of the object.
	Kind, Name string
	// State of the object.
	State State
	// Facts are short words about the object: version, node, endpoint.
	Facts []string
	// Why it is not Good; empty if it is.
	Why string
	// Children of the object.
	Children []*Node
}

// Objects is what a tree is drawn from: all objects of one namespace.
type Objects struct {
	Clusters []v1alpha1.TidbCluster
	// Groups in the order of v1alpha1.ComponentTable.
	Groups    []v1alpha1.Group
	Instances []v1alpha1.Instance
}

// Build makes the trees of a namespace: one for each TidbCluster, then one for
// each PDGroup that no TidbCluster made, with the groups that name it below,
// then the groups whose PDGroup does not exist.
func Build(o Objects) []*Node {
	below := func(match func(v1alpha1.Group) bool) []*Node {
		var out []*Node
		for _, g := range o.Groups {
			if match(g) {
				out = append(out, groupNode(g, o.Instances))
			}
		}
		return out
	}
	var roots []*Node
	for i := range o.Clusters {
		c := &o.Clusters[i]
		node := &Node{Kind: v1alpha1.KindTidbCluster, Name: c.Name, Facts: []string{c.Spec.Version}}
		node.State, node.Why = readState(c.Status.Conditions, c.Generation)
		if c.Status.Endpoint != "" {
			node.Facts = append(node.Facts, "mysql "+c.Status.Endpoint)
		}
		node.Children = below(func(g v1alpha1.Group) bool { return ownerClusterName(g) == c.Name })
		roots = append(roots, node)
	}
	named := map[string]bool{}
	for _, pd := range o.Groups {
		if pd.GroupKind() != v1alpha1.KindPDGroup {
			continue
		}
		named[pd.GetName()] = true
		if ownerClusterName(pd) != "" {
			continue
		}
		node := groupNode(pd, o.Instances)
		node.Children = append(node.Children, below(func(g v1alpha1.Group) bool {
			return g.GroupKind() != v1alpha1.KindPDGroup && ownerClusterName(g) == "" && g.PDGroupName() == pd.GetName()
		})...)
		roots = append(roots, node)
	}
	return append(roots, below(func(g v1alpha1.Group) bool { return ownerClusterName(g) == "" && !named[g.PDGroupName()] })...)
}

func ownerClusterName(g v1alpha1.Group) string {
	if owner := metav1.GetControllerOf(g); owner != nil && owner.Kind == v1alpha1.KindTidbCluster {
		return owner.Name
	}
	return ""
}

func groupNode(g v1alpha1.Group, instances []v1alpha1.Instance) *Node {
	status := g.GetGroupStatus()
	node := &Node{Kind: g.GroupKind(), Name: g.GetName()}
	node.Facts = []string{fmt.Sprintf("%d/%d", status.ReadyReplicas, g.GetReplicas())}
	node.State, node.Why = readState(status.Conditions, g.GetGeneration())
	var own []*v1alpha1.Instance
	for i := range instances {
		if in := &instances[i]; in.Spec.Group.Kind == g.GroupKind() && in.Spec.Group.Name == g.GetName() {
			own = append(own, in)
		}
	}
	slices.SortFunc(own, func(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	for _, in := range own {
		node.Children = append(node.Children, instanceNode(in))
	}
	return node
}

func instanceNode(in *v1alpha1.Instance) *Node {
	node := &Node{Kind: v1alpha1.KindInstance, Name: in.Name}
	node.State, node.Why = readState(in.Status.Conditions, in.Generation)
	if m := in.Status.Member; m != nil {
		node.Facts = append(node.Facts, m.State)
	}
	if in.Status.NodeName != "" {
		node.Facts = append(node.Facts, "on "+in.Status.NodeName)
	}
	return node
}

// readState reads the core conditions of an object.
func readState(conditions []metav1.Condition, generation int64) (State, string) {
	if c := gate.FindCurrentCondition(conditions, generation, v1alpha1.ConditionStalled); c != nil {
		return Stuck, c.Reason + ": " + c.Message
	}
	ready := gate.FindCurrentCondition(conditions, generation, v1alpha1.ConditionReady)
	upToDate := gate.FindCurrentCondition(conditions, generation, v1alpha1.ConditionUpToDate)
	switch {
	case ready == nil:
		return Waiting, "no status yet: its operator has not seen it"
	case ready.Status != metav1.ConditionTrue:
		return Waiting, ready.Reason + ": " + ready.Message
	case upToDate == nil || upToDate.Status != metav1.ConditionTrue:
		if upToDate == nil {
			return Serving, ""
		}
		return Serving, upToDate.Reason + ": " + upToDate.Message
	}
	return Good, ""
}

// IsAllGood reports whether every object of the trees is Good.
func IsAllGood(nodes []*Node) bool {
	for _, n := range nodes {
		if n.State != Good || !IsAllGood(n.Children) {
			return false
		}
	}
	return true
}

// sign returns the mark of a state.
func (s State) sign() string {
	switch s {
	case Good:
		return "●"
	case Serving:
		return "◐"
	case Stuck:
		return "✗"
	case Waiting:
	}
	return "◌"
}

// title returns the words of a line.
func (n *Node) title() string {
	words := []string{n.State.sign()}
	if n.Kind != v1alpha1.KindInstance {
		words = append(words, n.Kind)
	}
	return strings.Join(append(words, n.Name), " ")
}
