package origin

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Origin is the object that a group's spec is edited in, or an Instance without a group.
type Origin struct {
	// Namespace, Kind and Name of the object; the kind as kubectl takes it.
	Namespace, Kind, Name string
	// entry is the path of the group's own part in the spec of a TidbCluster, empty
	// for a group that stands alone.
	entry string
	// scaled is the group, if the TidbCluster does not name it any more: its replicas are
	// a user's, and its entry must be back for all else. Nil otherwise.
	scaled *Origin
}

// OfGroup returns the origin of a group. One that its TidbCluster does not name any more is
// marked as such.
func OfGroup(g v1alpha1.Group) Origin {
	owner := metav1.GetControllerOf(g)
	if owner == nil || owner.Kind != v1alpha1.KindTidbCluster || !isName(owner.Name) {
		return *standaloneOrigin(g)
	}
	o := entryOrigin(g.GetNamespace(), owner.Name, g.GroupKind(), g.GetName(), g.Component())
	if g.GetAnnotations()[v1alpha1.AnnotationEntryRemoved] == owner.Name {
		o.scaled = standaloneOrigin(g)
	}
	return o
}

// standaloneOrigin is a group that is edited itself.
func standaloneOrigin(g v1alpha1.Group) *Origin {
	return &Origin{Namespace: g.GetNamespace(), Kind: strings.ToLower(g.GroupKind()), Name: g.GetName()}
}

// OfInstance returns the origin of what the template of an Instance says: it carries
// the labels of its group. One without an owner whose group does not exist is edited
// itself, because nothing sets it back.
func OfInstance(i *v1alpha1.Instance, groupless bool) Origin {
	group, umbrella, component := i.Spec.Group, i.Labels[v1alpha1.LabelUmbrella], i.Labels[v1alpha1.LabelComponent]
	_, known := v1alpha1.LookupComponent(group.Kind)
	switch {
	case groupless, !known, !isName(group.Name):
		return Origin{Namespace: i.Namespace, Kind: instance, Name: i.Name}
	case umbrella == "":
		return Origin{Namespace: i.Namespace, Kind: strings.ToLower(group.Kind), Name: group.Name}
	}
	return entryOrigin(i.Namespace, umbrella, group.Kind, group.Name, component)
}

// isName reports whether an object can be called so. The API server checks neither the names in
// owner references nor the group that an Instance names, and others paste the commands.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// entryOrigin is the origin of a group of a TidbCluster.
func entryOrigin(namespace, umbrella, kind, group, component string) Origin {
	o := Origin{Namespace: namespace, Kind: strings.ToLower(v1alpha1.KindTidbCluster), Name: umbrella, entry: "spec." + component}
	if kind != v1alpha1.KindPDGroup {
		// The entries are a list by name, and the first mostly has none.
		name := strings.TrimPrefix(strings.TrimPrefix(group, names.Group(umbrella, component, "")), "-")
		o.entry += "[" + name + "]"
	}
	return o
}

// DescribeField returns the path of a field and the command by which it is edited, as in:
// correct it in spec.tikv[].config (kubectl -n db edit tidbcluster basic).
func (o Origin) DescribeField(field string) string { return o.Field(field) + " (" + o.Edit() + ")" }

// Translate makes a message that begins with a path of the group's spec, such as
// spec.config: ..., one about the object that a user edits, and names the command.
func (o Origin) Translate(message string) string {
	field, rest, found := strings.Cut(message, ": ")
	if path, ok := strings.CutPrefix(field, "spec."); found && ok && !strings.ContainsAny(path, " ,;") {
		return o.Field(path) + ": " + rest + ": " + o.Edit()
	}
	return message
}

// instance is the kind of Instances, as kubectl takes it.
const instance = "instance"

// Field returns the path of a field of the group's spec, such as replicas. What an
// Instance has of it is in its template, but for a few fields of its own.
func (o Origin) Field(name string) string {
	switch {
	case o.entry != "" && (o.scaled == nil || name != "replicas"):
		return o.entry + "." + name
	case o.Kind != instance, name == "paused", name == "suspended":
		return "spec." + name
	case name == "volumes":
		return "spec.volumeClaimTemplates"
	}
	return "spec.podTemplate"
}

// SharedField returns the path of a field that a TidbCluster has for all its groups,
// too, such as paused.
func (o Origin) SharedField(name string) string {
	if o.entry == "" || o.scaled != nil {
		return o.Field(name)
	}
	return "spec." + name + " or " + o.Field(name)
}

// Unset tells to set a flag back that a TidbCluster has for all its groups, too.
func (o Origin) Unset(field string) string {
	return "set " + o.SharedField(field) + " to false: " + o.Edit()
}

// Set tells to give a flag a value: by a command where the group stands alone, for the
// entries of a TidbCluster are a list, of which a patch would replace all.
func (o Origin) Set(field string, value bool) string {
	switch {
	case o.entry == "":
		return fmt.Sprintf("kubectl -n %s patch %s %s --type=merge -p '{\"spec\":{\"%s\":%t}}'", o.Namespace, o.Kind, o.Name, field, value)
	case value:
		return "set " + o.Field(field) + " to true: " + o.Edit()
	}
	return o.Unset(field)
}

// KeepClaims tells what to do before a group, or an Instance of it, is deleted whose claims are still
// needed; empty if they stay.
func KeepClaims(g v1alpha1.Group) string {
	if g.GetComponentSpec().PersistentVolumeClaimRetentionPolicy.WhenDeleted != v1alpha1.DeleteClaim {
		return ""
	}
	return "set " + OfGroup(g).DescribeField("persistentVolumeClaimRetentionPolicy.whenDeleted") + " to Retain first, which keeps its claims, then "
}

// Edit returns the command by which it is edited, and what has to be done first.
func (o Origin) Edit() string {
	if o.scaled != nil {
		return o.PutBack()
	}
	return o.edit()
}

// PutBack tells to give a TidbCluster the entry of the group again.
func (o Origin) PutBack() string { return fmt.Sprintf("put its entry back, %s: %s", o.entry, o.edit()) }

func (o Origin) edit() string {
	return fmt.Sprintf("kubectl -n %s edit %s %s", o.Namespace, o.Kind, o.Name)
}

// Scale returns what to do to have a number of members.
func (o Origin) Scale(replicas int) string {
	if o.scaled != nil {
		return o.scaled.Scale(replicas)
	}
	if o.entry != "" {
		return fmt.Sprintf("set %s to %d: %s", o.Field("replicas"), replicas, o.Edit())
	}
	return fmt.Sprintf("kubectl -n %s scale %s %s --replicas=%d", o.Namespace, o.Kind, o.Name, replicas)
}
