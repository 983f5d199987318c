package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

// Adapter says how an operator is measured that this package does not know: by its
// manifests, its processes, and when a cluster of it is ready.
type Adapter struct {
	// Name of the operator, for the table.
	Name string `json:"name"`
	// Apply are manifests that are applied first, such as CRDs: files, from the adapter's on.
	// In these, and in commands and their environment, {env NAME} is a variable of the bench's.
	Apply []string `json:"apply,omitempty"`
	// Controllers of Kubernetes that the operator needs beside those that run for all, as
	// statefulset-controller. What these ask and use is not counted.
	Controllers []string `json:"controllers,omitempty"`
	// Processes are the operator.
	Processes []AdapterProcess `json:"processes"`
	// Members are the pods that the operator makes of which the bench's databases consist.
	Members []AdapterMember `json:"members,omitempty"`
	// Privileged lets the namespace of the clusters take all pods. Those that Kubernetes' Pod
	// Security Standard "restricted" refuses cannot be made without.
	Privileged bool `json:"privileged,omitempty"`
	// Cluster is the manifest of one cluster, in which {name} and {namespace} stand for its own:
	// one object, or several with --- between them, which are created in this order.
	Cluster string `json:"cluster"`
	// Ready says when a cluster is ready. All that it names must hold.
	Ready AdapterReady `json:"ready"`
	// UserAgents are beginnings of the user agents whose requests count; all of the
	// processes' if there are none.
	UserAgents []string `json:"userAgents,omitempty"`
}

// AdapterProcess is one process of an operator.
type AdapterProcess struct {
	// Name of the process, and of the user that it is to the API server.
	Name string `json:"name"`
	// Command is the program with its arguments. {kubeconfig} stands for the path of its
	// access, {databases} for the address at which databases of the bench are asked for,
	// {bench} for this program.
	Command []string `json:"command"`
	// Env is added to the environment, with the same placeholders.
	Env map[string]string `json:"env,omitempty"`
	// Names has the process find PD's Services and the members' pods by their names. It needs
	// root, and the program unshare.
	Names bool `json:"names,omitempty"`
}

// AdapterReady says when a cluster is ready.
type AdapterReady struct {
	// Kind of the object of a cluster whose condition and field are looked at; its first
	// object if empty, and the first of the kind if there are several.
	Kind string `json:"kind,omitempty"`
	// Condition of the object that is True.
	Condition string `json:"condition,omitempty"`
	// Path of a field of the object, as in {.status.phase}, and its value.
	Path  string `json:"path,omitempty"`
	Value string `json:"value,omitempty"`
	// Pods is how many pods of each cluster are Ready.
	Pods int `json:"pods,omitempty"`
}

const (
	placeKubeconfig = "{kubeconfig}"
	placeDatabases  = "{databases}"
	placeBench      = "{bench}"
	placeName       = "{name}"
	placeNamespace  = "{namespace}"
)

// adapterControllers are what an adapter may have run. All others run for all, or would do what
// a rig does itself: it binds claims and runs pods, and the kubelets of its nodes report nothing.
func adapterControllers() []string {
	return []string{
		"cronjob-controller", "daemonset-controller", "deployment-controller", "endpoints-controller", "endpointslice-controller",
		"replicaset-controller", "replicationcontroller-controller", FloorController, "ttl-after-finished-controller",
	}
}

// ReadAdapter reads an adapter from a file.
func ReadAdapter(file string) (Adapter, error) {
	text, err := os.ReadFile(file) //nolint:gosec // who runs the bench names it
	if err != nil {
		return Adapter{}, fmt.Errorf("read adapter: %w", err)
	}
	var a Adapter
	if err := yaml.UnmarshalStrict(text, &a); err != nil {
		return a, fmt.Errorf("read adapter %s: %w", file, err)
	}
	if err := a.expand(); err != nil {
		return a, fmt.Errorf("read adapter %s: %w", file, err)
	}
	for i, path := range a.Apply {
		if !filepath.IsAbs(path) {
			a.Apply[i] = filepath.Join(filepath.Dir(file), path)
		}
	}
	if err := a.check(); err != nil {
		return a, fmt.Errorf("read adapter %s: %w", file, err)
	}
	return a, nil
}

// check names every field that is missing or wrong.
func (a Adapter) check() error {
	var errs []error
	if a.Name == "" {
		errs = append(errs, errors.New("name is missing: what the table calls the operator"))
	}
	for i, path := range a.Apply {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("apply[%d]: %w", i, err))
		}
	}
	errs = append(errs, a.checkControllers())
	if len(a.Processes) == 0 {
		errs = append(errs, errors.New("processes is missing: what runs the operator, each with name and command"))
	}
	var names []string
	for i, p := range a.Processes {
		errs = append(errs, p.check(fmt.Sprintf("processes[%d]", i), names))
		names = append(names, p.Name)
	}
	for i, m := range a.Members {
		errs = append(errs, m.check(fmt.Sprintf("members[%d]", i)))
	}
	if _, err := a.objects(clusterName(0), "namespace"); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, a.Ready.check())...)
}

// checkControllers names those that may not be run.
func (a Adapter) checkControllers() error {
	var errs []error
	for i, name := range a.Controllers {
		if !slices.Contains(adapterControllers(), name) {
			errs = append(errs, fmt.Errorf("controllers[%d] is %q: it may be %s; those for jobs, quotas, disruptions, garbage, namespaces and service accounts run for all", i, name, strings.Join(adapterControllers(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// check names what is missing or wrong of a process. others are the names of those before it.
func (p AdapterProcess) check(field string, others []string) error {
	var errs []error
	if p.Name == "" {
		errs = append(errs, fmt.Errorf("%s.name is missing: its requests are told apart by it", field))
	}
	if slices.Contains(others, p.Name) {
		errs = append(errs, fmt.Errorf("%s.name is %q, as of a process before it: give it another", field, p.Name))
	}
	if len(p.Command) == 0 {
		return errors.Join(append(errs, fmt.Errorf("%s.command is missing: the program and its arguments, with %s for the path of its kubeconfig", field, placeKubeconfig))...)
	}
	text := strings.Join(p.Command, "\n")
	for _, value := range p.Env {
		text += "\n" + value
	}
	if !strings.Contains(text, placeKubeconfig) {
		errs = append(errs, fmt.Errorf("%s.command and %s.env have no %s: without it the process does not reach the API server of the bench", field, field, placeKubeconfig))
	}
	return errors.Join(errs...)
}

// check names what is missing or wrong.
func (r AdapterReady) check() error {
	var errs []error
	if (r == AdapterReady{Kind: r.Kind}) {
		errs = append(errs, errors.New("ready is missing: condition, path with value, or pods, which all must hold"))
	}
	if (r.Path == "") != (r.Value == "") {
		errs = append(errs, fmt.Errorf("ready.path is %q and ready.value is %q: one needs the other", r.Path, r.Value))
	}
	if r.Pods < 0 {
		errs = append(errs, fmt.Errorf("ready.pods is %d: how many pods of each cluster are Ready in the end, or leave it out", r.Pods))
	}
	if err := jsonpath.New("").Parse(r.Path); err != nil {
		errs = append(errs, fmt.Errorf("ready.path is %q: %w: try {.status.phase}", r.Path, err))
	}
	return errors.Join(errs...)
}

// clusterObjects are the objects of one cluster.
type clusterObjects struct {
	all []*unstructured.Unstructured
	// looked is that of them which is looked at.
	looked *unstructured.Unstructured
}

// objects are those of a cluster of a name.
func (a Adapter) objects(name, namespace string) (clusterObjects, error) {
	text := strings.NewReplacer(placeName, name, placeNamespace, namespace).Replace(a.Cluster)
	all, err := objects.Decode([]byte(text))
	if err != nil {
		return clusterObjects{}, fmt.Errorf("cluster is no manifest of objects with --- between them: %w", err)
	}
	for i, o := range all {
		if err := checkObject(o, name, namespace); err != nil {
			return clusterObjects{}, fmt.Errorf("object %d of %w", i, err)
		}
	}
	if len(all) == 0 {
		return clusterObjects{}, fmt.Errorf("cluster is missing: the manifest of one cluster, with %s and %s for its name and namespace", placeName, placeNamespace)
	}
	at := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return a.Ready.Kind == "" || a.Ready.Kind == o.GetKind() })
	if at < 0 {
		return clusterObjects{}, fmt.Errorf("ready.kind is %q, and no object of cluster is of this kind: name one of them, or leave it out for the first", a.Ready.Kind)
	}
	return clusterObjects{all: all, looked: all[at]}, nil
}

// checkObject says what an object of a cluster lacks.
func checkObject(o *unstructured.Unstructured, name, namespace string) error {
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return errors.New("cluster has no apiVersion or no kind: write both")
	}
	if !strings.Contains(o.GetName(), name) || o.GetNamespace() != namespace {
		return fmt.Errorf("cluster has no %s in metadata.name or no namespace: %q: write both, for the bench creates many", placeName, placeNamespace)
	}
	return nil
}

// isReady reports whether the object of a cluster that is looked at says so.
func (r AdapterReady) isReady(o *unstructured.Unstructured) bool {
	if o == nil {
		return false
	}
	if c := objects.Condition(o, r.Condition); r.Condition != "" && (c == nil || c.Status != metav1.ConditionTrue) {
		return false
	}
	if r.Path == "" {
		return true
	}
	path := jsonpath.New("").AllowMissingKeys(true)
	var out strings.Builder
	return path.Parse(r.Path) == nil && path.Execute(&out, o.Object) == nil && out.String() == r.Value
}

// SuiteAdapter is the suite, with each operator in a process of its own.
func SuiteAdapter() Adapter {
	a := Adapter{
		Name:    "tidb-groups",
		Cluster: ourCluster,
		Ready:   AdapterReady{Condition: v1alpha1.ConditionReady, Pods: 8},
	}
	for _, name := range v1alpha1.Operators() {
		a.Processes = append(a.Processes, AdapterProcess{
			Name:    name,
			Command: []string{placeBench, OperatorCommand, name, placeKubeconfig, placeDatabases},
			Env:     heapEnvironment(name),
		})
	}
	return a
}

// ourCluster is the cluster of the other measurements, as a manifest.
const ourCluster = `
apiVersion: groups.tidb.dev/v1alpha1
kind: TidbCluster
metadata: {name: "{name}", namespace: "{namespace}"}
spec:
  version: ` + oldVersion + `
  pd: {replicas: 3, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 3, volumes: [{name: data, storage: 1Gi}]}]
  tidb: [{replicas: 2}]
`
