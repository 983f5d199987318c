package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// OnlineConfig is how the running members of a component take a changed configuration.
// Files are those of a ConfigMap, by name. Everything is pure.
type OnlineConfig interface {
	// AppliesOnline says whether members that run with the files old can be given the files
	// wanted while they run, or what needs a restart.
	AppliesOnline(old, wanted map[string]string) verdict.Verdict
	// Progress says how far the running member of an Instance is on its way to run with
	// the wanted files. others are the files that it may run with now.
	Progress(i *v1alpha1.Instance, others []map[string]string, wanted map[string]string) ConfigProgress
	// Refused says which of the wanted files' items running members are known not to take, if
	// there are any: a member may not start with them.
	Refused(wanted map[string]string) verdict.Reason
}

// ConfigProgress is how far a running member is with the items of a configuration.
type ConfigProgress struct {
	// Outcome says what it still lacks, and why; Done if nothing.
	Outcome step.Outcome
	// Apply says that what it lacks is to be sent to it now.
	Apply bool
	// Stuck names what it has taken and cannot be rid of without a restart.
	Stuck verdict.Reason
}

// ConfigUpdate is a configuration to send to a running member. Others is what else it may
// run with.
type ConfigUpdate struct {
	Instance *v1alpha1.Instance
	Others   []map[string]string
	Wanted   map[string]string
}
