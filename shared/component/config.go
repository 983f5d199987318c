package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// OnlineConfig is how the members of a component take a changed configuration while
// they run. Files are those of a ConfigMap, by name. All of it is pure.
type OnlineConfig interface {
	// Restart says why members that run with some files need a restart to run with
	// others; empty if they can be given what differs.
	Restart(old, wanted map[string]string) string
	// Progress says how far the running member of an Instance is on its way to run
	// with the wanted files, when it may run with any of some others.
	Progress(i *v1alpha1.Instance, others []map[string]string, wanted map[string]string) ConfigProgress
}

// ConfigProgress is how far a running member is with the items of a configuration.
type ConfigProgress struct {
	// Outcome says what it still lacks, and why; Done if nothing.
	Outcome step.Outcome
	// Apply says that it is to be given what it lacks now.
	Apply bool
	// Stuck names what it was given and cannot be rid of without a restart; empty
	// if nothing.
	Stuck string
}

// ConfigUpdate is the configuration that a running member is to be given. Others is what
// else it may run with.
type ConfigUpdate struct {
	Instance *v1alpha1.Instance
	Others   []map[string]string
	Wanted   map[string]string
}
