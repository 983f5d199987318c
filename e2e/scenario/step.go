package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// Step is one thing that is done or waited for: exactly one of its fields is
// set. Objects are named as in "PDGroup basic-pd".
type Step struct {
	// Apply manifests as with kubectl apply, one after the other: names of
	// manifests, or of files of deploy/samples.
	Apply []string `json:"apply,omitempty"`
	// Patch an object.
	Patch *Patch `json:"patch,omitempty"`
	// Scale an object through its scale subresource, as with kubectl scale.
	Scale *Scale `json:"scale,omitempty"`
	// Refuse is what the API server must not let through.
	Refuse *Refuse `json:"refuse,omitempty"`
	// Delete an object, without waiting. One that is not there is no error.
	Delete *Delete `json:"delete,omitempty"`
	// DeletePod deletes pods by name.
	DeletePod []string `json:"deletePod,omitempty"`
	// ForceDeletePod deletes pods by name without waiting for their kubelets, as
	// kubectl delete --force does.
	ForceDeletePod []string `json:"forceDeletePod,omitempty"`
	// DeleteClaim deletes claims by name, which is a user's consent.
	DeleteClaim []string `json:"deleteClaim,omitempty"`

	// Consent to the deletion of claims by name, which a spec then asks for.
	Consent []string `json:"consent,omitempty"`

	// Certificate makes a Secret with a certificate, or replaces it.
	Certificate *Certificate `json:"certificate,omitempty"`

	// Paste a command that a status prints into a shell.
	Paste *Paste `json:"paste,omitempty"`

	// Start operators, in the given order.
	Start []string `json:"start,omitempty"`
	// Stop operators gracefully, all at the same time.
	Stop []string `json:"stop,omitempty"`
	// Restart is Stop and then Start.
	Restart []string `json:"restart,omitempty"`

	// Await what must come, for a limited time.
	Await *Await `json:"await,omitempty"`
	// Expect what must be so at this moment.
	Expect *Expect `json:"expect,omitempty"`
	// Idle is for how long no operator may write anything.
	Idle *metav1.Duration `json:"idle,omitempty"`

	// Cordon a node.
	Cordon *Node `json:"cordon,omitempty"`
	// Uncordon a node.
	Uncordon *Node `json:"uncordon,omitempty"`
	// Drain cordons a node and evicts the scenario's pods from it, as kubectl
	// drain does, and returns when they are gone.
	Drain *Node `json:"drain,omitempty"`
	// LoseNode takes a node off the network, without a word.
	LoseNode *Node `json:"loseNode,omitempty"`
	// RecoverNode brings a lost node back.
	RecoverNode *Node `json:"recoverNode,omitempty"`
	// FillDisk leaves no room on the disk of a node's kubelet, which evicts its pods.
	FillDisk *Node `json:"fillDisk,omitempty"`
	// FreeDisk makes room again.
	FreeDisk *Node `json:"freeDisk,omitempty"`
	// DeleteNode deletes a Node object.
	DeleteNode *Node `json:"deleteNode,omitempty"`
	// Crash ends the process of a pod's main container.
	Crash *Crash `json:"crash,omitempty"`
	// WipeData erases what pods have on their volumes, all of them before their
	// processes are ended: a disk that is lost under a pod that stays.
	WipeData []string `json:"wipeData,omitempty"`
	// Replicate a table on TiFlash.
	Replicate *Replicate `json:"replicate,omitempty"`
	// SQL runs a statement.
	SQL *SQL `json:"sql,omitempty"`
	// Workload begins or ends a workload on a database.
	Workload *Workload `json:"workload,omitempty"`
	// Operation are steps under a workload.
	Operation *Operation `json:"operation,omitempty"`

	// Permute stands for its parts in some order; each order is a scenario.
	Permute *Permute `json:"permute,omitempty"`
}

// Patch is a change of one object.
type Patch struct {
	// Object that is changed.
	Object objects.Key `json:"object"`
	// Merge is a JSON merge patch: null removes a field. ${PDGroup a status.clusterID}
	// in it stands for the value of a field.
	Merge map[string]any `json:"merge,omitempty"`
	// JSON is a JSON patch, for single entries of lists.
	JSON []map[string]any `json:"json,omitempty"`
	// Status has it change the status, as a user does who restores an object with it.
	Status bool `json:"status,omitempty"`
}

// Scale is a number of replicas.
type Scale struct {
	// Object that is scaled.
	Object objects.Key `json:"object"`
	// Replicas that are asked for.
	Replicas int32 `json:"replicas"`
}

// Refuse is a request that must be refused.
type Refuse struct {
	// Apply is the name of a manifest.
	Apply string `json:"apply,omitempty"`
	// Patch of an object.
	Patch *Patch `json:"patch,omitempty"`
	// Says is a part of what the user is told.
	Says string `json:"says"`
}

// Delete is the deletion of an object.
type Delete struct {
	// Object that is deleted.
	Object objects.Key `json:"object"`
	// Cascade is background, foreground or orphan; background if empty.
	Cascade string `json:"cascade,omitempty"`
}

// Node names a node by a pod on it: what it is called differs between worlds.
type Node struct {
	// Of is a pod. The node is the one that the pod was on when the scenario
	// first named the pod's node; later steps mean the same node.
	Of string `json:"of"`
}

// Certificate is a Secret with a certificate that a user makes.
type Certificate struct {
	// Secrets by name, and for which Services they are: s-pd stands for its name in the
	// namespace, and *.s-pd-peer for every pod below it. One without is a client's.
	Secrets map[string][]string `json:"secrets"`
	// CA that signs it, by any name.
	CA string `json:"ca,omitempty"`
	// Expired has it expired a minute ago.
	Expired bool `json:"expired,omitempty"`
	// Ending says that they have come to the last tenth of their life.
	Ending bool `json:"ending,omitempty"`
	// Without is a key that is left out.
	Without string `json:"without,omitempty"`
	// ForeignKey says that tls.key is that of another certificate.
	ForeignKey bool `json:"foreignKey,omitempty"`
	// Common name of it; test if it is empty.
	Common string `json:"common,omitempty"`
}

// Crash is the end of a process that Kubernetes does not ask for.
type Crash struct {
	// Pod whose main container crashes. ${PDGroup a status.leader} stands for the
	// value of a field, here and where pods are deleted.
	Pod string `json:"pod"`
	// Times in a row; 1 if 0. A negative number is a crash loop without end.
	Times int `json:"times,omitempty"`
}

// Replicate is how many replicas on TiFlash a table has, as its owner says with
// ALTER TABLE ... SET TIFLASH REPLICA.
type Replicate struct {
	// PDGroup of the database.
	PDGroup string `json:"pdGroup"`
	// Table is its ID.
	Table int `json:"table"`
	// Replicas that it is to have; 0 for none.
	Replicas int `json:"replicas"`
}

// Login is who asks through the Service of a TiDBGroup.
type Login struct {
	// TiDBGroup that is asked, or the TiProxyGroup through which one is.
	TiDBGroup string `json:"tidbGroup,omitempty"`
	// User who asks; root if empty.
	User string `json:"user,omitempty"`
	// PasswordFrom is where the user's password is: a Secret and its key, with a
	// slash between them; none if empty.
	PasswordFrom string `json:"passwordFrom,omitempty"`
	// Plain says that TLS is not used even if the group offers it.
	Plain bool `json:"plain,omitempty"`
}

// UserName is who asks.
func (l Login) UserName() string { return cmp.Or(l.User, "root") }

// SQL is a statement that a user runs through the Service of a TiDBGroup.
type SQL struct {
	Login `json:",inline"`
	// Run is the statement. It may read fields, as the values of a patch may.
	Run string `json:"run"`
	// Snapshot is the time stamp of PD at which the database is read, which may be a field; the
	// newest state if empty.
	Snapshot string `json:"snapshot,omitempty"`
	// Is what the first column of its first row says; not looked at if absent.
	Is *string `json:"is,omitempty"`
	// Same is a statement that has to say the same.
	Same *SQL `json:"same,omitempty"`
	// Fails is a part of the error that it ends with.
	Fails string `json:"fails,omitempty"`
}

// Workload is package workload on the database of a TiDBGroup: it begins with this step, which
// waits for its tables, and ends with one that says so, or with the scenario. Rows that are
// lost, and whatever else a workload finds, fail the scenario.
type Workload struct {
	Login `json:",inline"`
	// Split is with how many regions each of its tables of rows begins, as a power of two.
	Split int `json:"split,omitempty"`
	// End ends the workload that runs. All else is empty then.
	End bool `json:"end,omitempty"`
}

// Operation is something that is done to a database under a workload.
type Operation struct {
	// Name that tables and pictures give it.
	Name string `json:"name"`
	// Steps that are it. At their end every session of the workload has a success, and all
	// rows are read back.
	Steps []Step `json:"steps"`
	// Failed is how many statements may fail on connections that are renewed in time, and
	// FailedLong on those that stay; any number if absent.
	Failed     *int `json:"failed,omitempty"`
	FailedLong *int `json:"failedLong,omitempty"`
	// FailedLongAtLeast is how many have to fail on those that stay.
	FailedLongAtLeast int `json:"failedLongAtLeast,omitempty"`
	// Pause is how long any session may be without a success while it wants one; any time if
	// absent.
	Pause *metav1.Duration `json:"pause,omitempty"`
}

// Permute are things that are done in some order.
type Permute struct {
	// Apply are manifests, one step each.
	Apply []string `json:"apply,omitempty"`
	// Start are operators, one step each.
	Start []string `json:"start,omitempty"`
	// Sample is how many orders are run when not all are asked for.
	Sample int `json:"sample"`
}

// verbs returns the names of the fields that are set.
func (s Step) verbs() []string {
	var out []string
	value := reflect.ValueOf(s)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return out
}

// String renders the step on one line.
func (s Step) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Sprintf("%v: %v", s.verbs(), err)
	}
	return strings.Trim(string(text), "{}")
}
