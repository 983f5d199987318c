// Package origin tells where a person has to edit what a group is asked for: in
// the group, or in the TidbCluster that made it and sets the group back. It is
// pure.
package origin

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Origin is the object that a group's spec is edited in.
type Origin struct {
	// Namespace, Kind and Name of the object; the kind as kubectl takes it.
	Namespace, Kind, Name string
	// entry is the path of the group's own part in the spec of a TidbCluster, empty
	// for a group that stands alone.
	entry string
}

// Of returns the origin of a group.
func Of(g v1alpha1.Group) Origin {
	owner := metav1.GetControllerOf(g)
	if owner == nil || owner.Kind != v1alpha1.KindTidbCluster {
		return Origin{Namespace: g.GetNamespace(), Kind: strings.ToLower(g.GroupKind()), Name: g.GetName()}
	}
	o := Origin{Namespace: g.GetNamespace(), Kind: strings.ToLower(v1alpha1.KindTidbCluster), Name: owner.Name, entry: "spec." + g.Component()}
	if g.GroupKind() != v1alpha1.KindPDGroup {
		// The entries are a list by name, and the first mostly has none.
		name := strings.TrimPrefix(strings.TrimPrefix(g.GetName(), names.Group(owner.Name, g.Component(), "")), "-")
		o.entry += "[" + name + "]"
	}
	return o
}

// Field returns the path of a field of the group's spec, such as replicas.
func (o Origin) Field(name string) string {
	if o.entry == "" {
		return "spec." + name
	}
	return o.entry + "." + name
}

// Either returns the path of a field that a TidbCluster has for all its groups,
// too, such as paused.
func (o Origin) Either(name string) string {
	if o.entry == "" {
		return "spec." + name
	}
	return "spec." + name + " or " + o.Field(name)
}

// Edit returns the command by which it is edited.
func (o Origin) Edit() string {
	return fmt.Sprintf("kubectl -n %s edit %s %s", o.Namespace, o.Kind, o.Name)
}

// Scale returns what to do to have a number of members.
func (o Origin) Scale(replicas int) string {
	if o.entry == "" {
		return fmt.Sprintf("kubectl -n %s scale %s %s --replicas=%d", o.Namespace, o.Kind, o.Name, replicas)
	}
	return fmt.Sprintf("%s (%s: %d)", o.Edit(), o.Field("replicas"), replicas)
}
