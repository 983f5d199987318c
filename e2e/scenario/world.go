package scenario

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
)

// ErrNotHere is what a world answers to a step that it cannot do. A scenario
// with such a step does not name that world.
var ErrNotHere = errors.New("this world cannot do that")

// World is where a scenario runs: one namespace of a Kubernetes, the operators,
// and whatever plays nodes and database.
type World interface {
	// Kind is Rig or Containers.
	Kind() string
	// Namespace that the scenario has to itself.
	Namespace() string
	// User has full access; what it does is the user's doing.
	User() client.Client
	// Await returns once holds is content with all objects of the namespace. It
	// ends with holds' last word when the context ends, and early when an alarm
	// or a violation makes waiting useless.
	Await(ctx context.Context, holds func(objects.Set) error) error

	// StartOperators starts operators one after the other and returns when they
	// work. One that runs is left alone.
	StartOperators(ctx context.Context, names ...string) error
	// StopOperators stops operators gracefully, all at the same time, and
	// returns when they have ended. One that does not run is no error.
	StopOperators(ctx context.Context, names ...string) error

	// Consent lets claims go, which nothing else may.
	Consent(claims ...string)
	// LoseNode takes a node off the network, without a word.
	LoseNode(ctx context.Context, node string) error
	// RecoverNode brings a lost node back.
	RecoverNode(ctx context.Context, node string) error
	// FillDisk leaves no room on the disk of a node's kubelet, which evicts its pods.
	FillDisk(ctx context.Context, node string) error
	// FreeDisk makes room again.
	FreeDisk(ctx context.Context, node string) error
	// Crash ends the process of a pod's main container so many times in a row,
	// each time as soon as it runs again; without end if negative.
	Crash(ctx context.Context, pod string, times int) error
	// WipeData erases what pods have on their volumes and ends their main containers'
	// processes.
	WipeData(ctx context.Context, pods []string) error
	// Replicate has a table of a PDGroup's database have so many replicas on
	// TiFlash, as ALTER TABLE ... SET TIFLASH REPLICA does.
	Replicate(ctx context.Context, pdGroup string, table, replicas int) error

	// Paste runs a command line as a shell does, with full access. Kubectl opens the editor
	// on what is to be edited, and does not wait for the end of what it deletes.
	Paste(ctx context.Context, line, editor string) error

	// Query runs a statement; what it returns is the first column of the first row,
	// as text.
	Query(ctx context.Context, q SQL) (string, error)
	// Login is where the Service of a TiDBGroup listens now, and what it takes to log in.
	Login(ctx context.Context, l Login) (workload.Login, error)

	// Replicated is content when every region of every database of the namespace
	// has as many voters as PD wants, or as there are stores.
	Replicated(ctx context.Context) error

	// Regions counts the regions on the store of a pod, and those that it leads.
	Regions(ctx context.Context, pod string) (all, led int, err error)

	// Folders are the folders of backups that files lie in on the volume of a claim.
	Folders(ctx context.Context, claim string) ([]string, error)

	// Setting is the value of a key of the configuration that the member in a pod
	// runs with, as its status port shows it; an error while it shows nothing.
	Setting(ctx context.Context, pod, key string) (string, error)

	// Serial is the serial number of the certificate that the member in a pod shows to who
	// connects as the operators do.
	Serial(ctx context.Context, pod string) (string, error)

	// Observed is what was seen so far.
	Observed() Observed
}

// Observed is what a world has seen since it came to be.
type Observed struct {
	// UIDs that each pod and claim had, by kind and name, in their order.
	UIDs map[objects.Key][]types.UID
	// Bootstraps is how many PD clusters were bootstrapped for each PDGroup.
	Bootstraps map[string]int
	// Upgrades are what TiDB was told of upgrades, for each PDGroup; nil where it is
	// not known.
	Upgrades map[string]model.Upgrades
	// Flushed is how often the process of each TiKV pod ended with its log backups
	// written out.
	Flushed map[string]int
	// Led is how often the process of each TiKV pod ended while its store led regions,
	// and that of each PD pod while it led beside others.
	Led map[string]int
	// Evicting are the stores, by the names of their pods, from which PD keeps leaders
	// away now.
	Evicting []string
	// Held are the services, BR's runs among them, that have PD hold old data back now.
	Held []string
	// Alarms that the scenario does not tolerate.
	Alarms []string
	// Violations of what the watcher looks after.
	Violations []string
	// Tried are the messages with a command that were seen in a status; the commands were
	// tried where the world can, which tells of those that do not work by violations.
	Tried []string
	// Requests of the operators to the API server.
	Requests map[Request]int
	// Versions is how many versions of objects were seen.
	Versions int
}
