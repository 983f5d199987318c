package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// The worlds that a scenario can run in.
const (
	// Rig is the simulated world of package rig.
	Rig = "rig"
	// Containers is a complete Kubernetes with kubelets and containers.
	Containers = "containers"
)

// All stands for every operator in a list of operators.
const All = "all"

// Scenario is one story: what is done, in order, and what has to come of it.
type Scenario struct {
	// Name of the scenario, which is also its file's.
	Name string `json:"name"`
	// Shows is one sentence on what is shown.
	Shows string `json:"shows"`
	// Bears are the ids of the promises and parity items that it bears on.
	Bears []string `json:"bears"`
	// Worlds that it runs in; the rig if none is named.
	Worlds []string `json:"worlds,omitempty"`
	// Cluster names a namespace of containers that scenarios share, one after the
	// other by their names: each begins with what the one before left. A namespace of
	// its own if empty.
	Cluster string `json:"cluster,omitempty"`
	// Full says that containers run it only when everything is asked for.
	Full bool `json:"full,omitempty"`
	// Options of the world.
	Options Options `json:"options,omitempty"`
	// Timeout is how long each await may take that does not say.
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// Use names files of e2e/scenarios/manifests, without their ending, whose
	// manifests the steps may name as well.
	Use []string `json:"use,omitempty"`
	// Manifests are objects as a user writes them, by a name for the steps.
	Manifests map[string]Manifest `json:"manifests,omitempty"`
	// Steps in their order.
	Steps []Step `json:"steps"`
}

// Manifest is one object as a user writes it, without a namespace.
type Manifest map[string]any

// Options shape the world of a scenario.
type Options struct {
	// Tolerate are the alarms that the scenario itself is the cause of.
	Tolerate []model.AlarmKind `json:"tolerate,omitempty"`
	// Absent are the operators that are not started at first, or all.
	Absent []string `json:"absent,omitempty"`
	// ClusterWide lets the operators watch all namespaces, and the nodes. Such
	// a scenario runs alone.
	ClusterWide bool `json:"clusterWide,omitempty"`
	// Nodes is how many nodes a simulated world has, over three zones; 3 if zero.
	Nodes int `json:"nodes,omitempty"`
	// Delays of a simulated world; others have their own.
	Delays Delays `json:"delays,omitempty"`
	// Database shapes the simulated databases; others have their own.
	Database Database `json:"database,omitempty"`
	// CertManager has the controllers of cert-manager look after the namespace.
	CertManager bool `json:"certManager,omitempty"`
	// Fault is what an operator does not see, or sees late, in a simulated world:
	// a fault of a watch as faults.Parse reads it. A campaign has faults of its
	// own instead.
	Fault string `json:"fault,omitempty"`
}

// Database shapes a simulated database.
type Database struct {
	// Speed is how many times as fast as a clock its time goes: leaders and peers
	// move so much faster, and a store is Disconnected and Down so much sooner.
	// 1 if 0.
	Speed float64 `json:"speed,omitempty"`
	// Regions that it has; 104 if 0.
	Regions int `json:"regions,omitempty"`
	// LogBackup is the name of a log backup that runs; none if empty.
	LogBackup string `json:"logBackup,omitempty"`
	// Load is how long a PD that starts takes to load the regions, by the time of Speed.
	Load metav1.Duration `json:"load,omitempty"`
	// CatchUp is how long a TiFlash says Idle on its status port after its start, of
	// which PD takes it for Up already.
	CatchUp metav1.Duration `json:"catchUp,omitempty"`
}

// Delays say how long things take in a simulated world; zero is at once.
type Delays struct {
	// Schedule a pod, and bind its claims.
	Schedule metav1.Duration `json:"schedule,omitempty"`
	// Start from the scheduled pod to the running one.
	Start metav1.Duration `json:"start,omitempty"`
	// Ready from the running pod to the ready one.
	Ready metav1.Duration `json:"ready,omitempty"`
	// Stop is how long a process takes to end, at most its grace period.
	Stop metav1.Duration `json:"stop,omitempty"`
	// Second is how long a second of the kubelet's takes, of which preStop hooks,
	// grace periods, back-offs and tolerations have many.
	Second metav1.Duration `json:"second,omitempty"`
}

// RunsIn says whether the scenario runs in a world.
func (s Scenario) RunsIn(world string) bool {
	return world == Rig && len(s.Worlds) == 0 || slices.Contains(s.Worlds, world)
}

// Operators returns the names of all operators.
func Operators() []string { return v1alpha1.Operators() }

// Needed returns the names of the operators that the scenario needs: those of
// Instances, and of the kinds that its steps, or what they apply, name. The others
// would cost a scenario time and show nothing.
func (s Scenario) Needed() ([]string, error) {
	text, err := s.text()
	if err != nil {
		return nil, fmt.Errorf("find out which operators scenario %s needs: %w", s.Name, err)
	}
	return slices.DeleteFunc(Operators(), func(name string) bool {
		component := strings.TrimSuffix(name, "group") // so a TidbCluster names it
		if name == v1alpha1.OperatorBackup {
			// TiKV's log backup, of which some speak, is not its business.
			return !slices.ContainsFunc(v1alpha1.BackupKinds(), func(kind string) bool {
				return strings.Contains(text, strconv.Quote(strings.ToLower(kind)))
			})
		}
		return name != strings.ToLower(v1alpha1.KindInstance) && !strings.Contains(text, component)
	}), nil
}

// text returns in lower case what the steps say, with all that they apply.
func (s Scenario) text() (string, error) {
	steps, err := json.Marshal([]any{s.Options, s.Steps})
	if err != nil {
		return "", fmt.Errorf("write steps: %w", err)
	}
	var applied []any
	for name, manifest := range s.Manifests {
		if bytes.Contains(steps, []byte(strconv.Quote(name))) {
			applied = append(applied, manifest)
		}
	}
	for _, name := range sampleNames.FindAllString(string(steps), -1) {
		objects, err := readSample(strings.Trim(name, `"`))
		if err != nil {
			return "", err
		}
		applied = append(applied, objects)
	}
	manifests, err := json.Marshal(applied)
	if err != nil {
		return "", fmt.Errorf("write manifests: %w", err)
	}
	return strings.ToLower(strings.ReplaceAll(string(steps)+string(manifests), v1alpha1.GroupName, "")), nil
}

// sampleNames finds the names of samples in steps.
var sampleNames = regexp.MustCompile(`"[^" ]+\.yaml"`)

// within is how long a wait may take that says so, or does not.
func (s Scenario) within(said time.Duration) time.Duration {
	return cmp.Or(said, s.Timeout.Duration, defaultTimeout)
}

// objects returns what a name of an apply step stands for.
func (s Scenario) objects(name string) ([]*unstructured.Unstructured, error) {
	if strings.HasSuffix(name, ".yaml") {
		return readSample(name)
	}
	object := &unstructured.Unstructured{Object: s.Manifests[name]}
	return []*unstructured.Unstructured{object.DeepCopy()}, nil
}
