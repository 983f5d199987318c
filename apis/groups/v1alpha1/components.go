package v1alpha1

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Group is implemented by every kind of group.
// +kubebuilder:object:generate=false
type Group interface {
	metav1.Object
	runtime.Object
	// GroupKind returns the kind's name.
	GroupKind() string
	// Component returns the value of LabelComponent.
	Component() string
	// PDGroupName returns the PDGroup that the group belongs to; a PDGroup
	// answers its own name.
	PDGroupName() string
	// GetReplicas returns the number of members asked for.
	GetReplicas() int32
	// GetComponentSpec returns the part of the spec that all groups share.
	GetComponentSpec() *ComponentSpec
	// GetTLS returns the TLS between the group's members and the other components, nil
	// for none.
	GetTLS() *TLS
	// GetGroupStatus returns the part of the status that all groups share.
	GetGroupStatus() *GroupStatus
}

// ClientGroup is a group that MySQL clients connect to.
// +kubebuilder:object:generate=false
type ClientGroup interface {
	Group
	// GetEndpoint returns where they do, host:port, as the group's status says.
	GetEndpoint() string
	// IsClosed reports whether the group is to let no client in.
	IsClosed() bool
	// Close has it let none in.
	Close()
	// GetMySQLTLS returns the TLS towards its clients, nil for none.
	GetMySQLTLS() *MySQLTLS
}

// SurgeGroup is a group that may have more members for a while than are asked for.
// +kubebuilder:object:generate=false
type SurgeGroup interface {
	Group
	// GetMaxSurge returns how many more, nil if the spec does not say.
	GetMaxSurge() *int32
}

// BackendGroup is a group whose members are MySQL clients of TiDB servers.
// +kubebuilder:object:generate=false
type BackendGroup interface {
	Group
	// GetBackendTLS returns the TLS towards the servers, nil for none.
	GetBackendTLS() *BackendTLS
}

// closedService returns what a Service is shaped by that leads nowhere.
func closedService(s *ServiceSpec) *ServiceSpec {
	if s = s.DeepCopy(); s == nil {
		s = &ServiceSpec{}
	}
	s.Closed = true
	return s
}

// GroupList is implemented by the list of every kind of group.
// +kubebuilder:object:generate=false
type GroupList interface {
	metav1.ListInterface
	runtime.Object
	// Groups returns the groups of the list, which they stay part of.
	Groups() []Group
}

// ComponentInfo is what has to be known of a component outside its own operator.
// +kubebuilder:object:generate=false
type ComponentInfo struct {
	// Kind of its groups.
	Kind string
	// Component is the value of LabelComponent, and the field of a TidbCluster's spec.
	Component string
	// Resource is the plural by which the API server knows the kind.
	Resource string
	// Rollout is the place in the order in which the components of a cluster get a new
	// version, smallest first, as TiDB's documentation has it. They are suspended in
	// reverse.
	Rollout int
	// OwnReleases says that its versions are not those of the cluster. Then it has no place
	// in the order: it waits for no other group, and none waits for it unless it is UpgradedFirst.
	OwnReleases bool
	// UpgradedFirst says that all others in the order wait while its members get a new version
	// or configuration: it knows older versions of them, and not newer ones.
	UpgradedFirst bool
	// Stores says that its members are stores of PD, which hold regions.
	Stores bool
	// LearnerEngine is how PD's label engine begins at its stores, if these have learners
	// only: they lead nothing, and no majority counts on them. Empty for all others.
	LearnerEngine string
	// Stateless says that its members keep nothing that another one needs: a group of them
	// may be deleted at once, and has a PodDisruptionBudget of its own.
	Stateless bool
	// NeedsTiKV says that it waits for a TiKVGroup that is Ready, beside the PDGroup.
	NeedsTiKV bool
	// NeedsPlacementRules says that it cannot work with a PD that has placement rules
	// switched off.
	NeedsPlacementRules bool
	// IgnoresCommonNames says that its TLS takes no allowedCommonNames, OwnCommonNames that
	// it demands them of its own members alone.
	IgnoresCommonNames, OwnCommonNames bool
	// StatusPort is the port at which each member tells of itself over HTTP: where it is
	// asked for its state, or its metrics are.
	StatusPort int32
	// New returns an empty group, and NewList an empty list of them.
	New     func() Group
	NewList func() GroupList
	// Entries are the groups that a TidbCluster asks for, of the PDGroup that is given.
	Entries func(c *TidbClusterSpec, pd LocalReference) []Entry
}

// Check names every field that is not set and has to be.
func (c ComponentInfo) Check() error {
	var missing []error
	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"Kind", c.Kind != ""}, {"Component", c.Component != ""}, {"Resource", c.Resource != ""},
		{"Rollout", c.Rollout > 0 || c.OwnReleases}, {"StatusPort", c.StatusPort != 0},
		{"New", c.New != nil}, {"NewList", c.NewList != nil}, {"Entries", c.Entries != nil},
	} {
		if !field.isSet {
			missing = append(missing, fmt.Errorf("field %s is not set", field.name))
		}
	}
	return errors.Join(missing...)
}

// LeadsRegions reports whether its members are stores that lead regions.
func (c ComponentInfo) LeadsRegions() bool { return c.Stores && c.LearnerEngine == "" }

// LeadsRegions reports whether the members of a kind of groups are stores that lead regions.
func LeadsRegions(kind string) bool {
	info, _ := LookupComponent(kind)
	return info.LeadsRegions()
}

// HasLearnersOnly reports whether a store whose label engine has a value in PD has learners
// only.
func HasLearnersOnly(engine string) bool {
	return slices.ContainsFunc(componentTable(), func(c ComponentInfo) bool { return c.LearnerEngine != "" && strings.HasPrefix(engine, c.LearnerEngine) })
}

// Entry is a group as an entry of a TidbCluster describes it.
// +kubebuilder:object:generate=false
type Entry struct {
	// Name of the entry; empty for the main one.
	Name string
	// Group has the entry's spec and nothing else.
	Group Group
}

// ComponentTable returns every component, in the order of the documents. It is the one
// place that lists them.
func ComponentTable() []ComponentInfo { return slices.Clone(componentTable()) }

// componentTable makes the table once: it is looked up in with every decision.
var componentTable = sync.OnceValue(func() []ComponentInfo {
	return []ComponentInfo{pdComponent(), tikvComponent(), tidbComponent(), tiflashComponent(), tiproxyComponent(), ticdcComponent()}
})

// RolloutOrder returns the components in the order in which they get a new version. Those
// that have no place in it come last.
func RolloutOrder() []ComponentInfo {
	out := ComponentTable()
	slices.SortStableFunc(out, func(a, b ComponentInfo) int {
		switch {
		case a.OwnReleases == b.OwnReleases:
			return cmp.Compare(a.Rollout, b.Rollout)
		case b.OwnReleases:
			return -1
		}
		return 1
	})
	return out
}

// LookupComponent returns the component whose groups are of a kind.
func LookupComponent(kind string) (ComponentInfo, bool) {
	for _, c := range componentTable() {
		if c.Kind == kind {
			return c, true
		}
	}
	return ComponentInfo{}, false
}

// GroupKinds returns the kinds of groups that are wanted, in the order of the documents.
func GroupKinds(wanted func(ComponentInfo) bool) []string {
	var out []string
	for _, c := range ComponentTable() {
		if wanted(c) {
			out = append(out, c.Kind)
		}
	}
	return out
}

// Kinds returns every kind of the API group, in the order of the documents.
func Kinds() []string {
	return append(ClusterKinds(), BackupKinds()...)
}

// ClusterKinds returns the kinds that a cluster is made of, in the order of the documents.
// Each has an operator of its own, named as it is.
func ClusterKinds() []string {
	out := append([]string{KindTidbCluster}, GroupKinds(func(ComponentInfo) bool { return true })...)
	return append(out, KindInstance)
}

// BackupKinds returns the kinds of the backup operator.
func BackupKinds() []string {
	return []string{KindBackup, KindBackupSchedule, KindLogBackup, KindRestore}
}

// Operators returns the names of all operators.
func Operators() []string {
	var out []string
	for _, kind := range ClusterKinds() {
		out = append(out, strings.ToLower(kind))
	}
	return append(out, OperatorBackup)
}

// Programs returns the names of what is built into images: every operator, and all in one.
func Programs() []string { return append(Operators(), OperatorAll) }

// OperatorOf returns the name of the operator that looks after a kind.
func OperatorOf(kind string) string {
	if slices.Contains(BackupKinds(), kind) {
		return OperatorBackup
	}
	return strings.ToLower(kind)
}

// GroupsIn returns the groups of a list, none if it is one of something else.
func GroupsIn(list runtime.Object) []Group {
	if groups, ok := list.(GroupList); ok {
		return groups.Groups()
	}
	return nil
}

// groupsOf returns pointers to the items of a list as groups.
func groupsOf[T any, P interface {
	*T
	Group
}](items []T) []Group {
	var out []Group
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}
