package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
)

const (
	// acmeCommand is the argument with which this program is a process of the operator of
	// testdata/acme.yaml.
	acmeCommand = "acme"
	// acmeSets and acmePhases are its two processes: one makes a StatefulSet for each Database,
	// one says of a Database that its StatefulSet is ready.
	acmeSets, acmePhases = "sets", "phases"
	// acmeHeap is what each process holds, in bytes, so that their memory tells how many there are.
	acmeHeap = 48 << 20
	// acmeWork is the processor time that it spends for a Database, several times what the
	// kernel's count of a process is exact to.
	acmeWork = 50 * time.Millisecond
)

// acme is a process of an operator.
type acme struct {
	ctx context.Context
	// client is the operator's; helper has another user agent, whose requests do not count.
	client, helper client.Client
	dynamic        dynamic.Interface
	done           map[string]bool // objects that nothing is left to do for
	failed         chan error
}

// runAcme runs a process of the operator until the context ends.
func runAcme(ctx context.Context, role, kubeconfig string) error {
	heap := make([]byte, acmeHeap)
	for i := range heap {
		heap[i] = 1 // or the kernel gives it no memory
	}
	defer runtime.KeepAlive(heap)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "acme/1.0 (" + role + ")"
	a := acme{ctx: ctx, done: map[string]bool{}, failed: make(chan error, 1)}
	if a.client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	if a.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	other := rest.CopyConfig(config)
	other.UserAgent = "helper-of-acme/1.0"
	if a.helper, err = client.New(other, client.Options{}); err != nil {
		return err
	}
	switch role {
	case acmeSets:
		err = a.each(schema.GroupVersionResource{Group: "acme.example.com", Version: "v1", Resource: "databases"}, a.makeSet)
	case acmePhases:
		err = a.each(appsv1.SchemeGroupVersion.WithResource("statefulsets"), a.tellPhase)
	default:
		err = fmt.Errorf("acme has no process %q", role)
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.failed:
		return err
	}
}

// each does something for each object, again with each version until it is done.
func (a *acme) each(resource schema.GroupVersionResource, do func(*unstructured.Unstructured) (bool, error)) error {
	informers := dynamicinformer.NewDynamicSharedInformerFactory(a.dynamic, 0)
	_, err := informers.ForResource(resource).Informer().AddEventHandler(objects.NewHandler(func(o *unstructured.Unstructured, there bool) {
		if !there || a.done[o.GetName()] {
			return
		}
		done, err := do(o)
		if err != nil {
			select {
			case a.failed <- err:
			default: // the first one will do
			}
		}
		a.done[o.GetName()] = done
	}))
	informers.Start(a.ctx.Done())
	return err
}

// work spends acmeWork.
func work() error {
	began, err := readProcessorTime(os.Getpid())
	for now := began; err == nil && now < began+acmeWork; {
		now, err = readProcessorTime(os.Getpid())
	}
	return err
}

// makeSet makes the StatefulSet of a Database.
func (a *acme) makeSet(database *unstructured.Unstructured) (bool, error) {
	if err := work(); err != nil {
		return false, err
	}
	name, _, err := unstructured.NestedString(database.Object, "spec", "settings")
	if err != nil {
		return false, err
	}
	settings := &corev1.ConfigMap{}
	if err := a.client.Get(a.ctx, client.ObjectKey{Namespace: database.GetNamespace(), Name: name}, settings); err != nil {
		return false, err
	}
	replicas, err := strconv.ParseInt(settings.Data["replicas"], 10, 32)
	if err != nil {
		return false, err
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: database.GetNamespace(), Name: database.GetName() + "-note"}}
	if err := a.helper.Create(a.ctx, note); err != nil {
		return false, err
	}
	set := floorSet{name: database.GetName(), replicas: int32(replicas), data: true}
	return true, a.client.Create(a.ctx, set.render(set.name, database.GetNamespace()))
}

// tellPhase tells in the status of a Database that its StatefulSet is ready.
func (a *acme) tellPhase(set *unstructured.Unstructured) (bool, error) {
	want, _, err := unstructured.NestedInt64(set.Object, "spec", "replicas")
	if err != nil {
		return false, err
	}
	have, _, err := unstructured.NestedInt64(set.Object, "status", "readyReplicas")
	if err != nil || have < want {
		return false, err
	}
	database := &unstructured.Unstructured{}
	database.SetAPIVersion("acme.example.com/v1")
	database.SetKind("Database")
	database.SetNamespace(set.GetNamespace())
	database.SetName(set.GetName())
	return true, a.client.Status().Patch(a.ctx, database, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Running"}}`)))
}

// The other operator works by StatefulSets, in two processes, and a cluster of it is two objects.
func TestAnotherOperatorIsMeasuredBesideOursInOneRun(t *testing.T) {
	t.Parallel()
	adapters, err := LoadAdapters("testdata/acme.yaml")
	require.NoError(t, err)
	const clusters = 2
	all, err := MeasureSideBySide(t.Context(), adapters, []Case{{Clusters: clusters}})
	require.NoError(t, err)
	require.Len(t, all, 2)
	ours, theirs := all[0], all[1]

	least := 0
	for _, w := range StartBudget() {
		least += w.AtLeast
	}
	assert.GreaterOrEqual(t, ours.Start.Writes, clusters*least)
	assert.Equal(t, 2*clusters, theirs.Start.Writes, "a StatefulSet and a phase for each cluster, and nothing of the helper, of Kubernetes or of ours")
	assert.GreaterOrEqual(t, theirs.Start.Reads, clusters, "the settings of each")
	assert.Zero(t, theirs.Idle.Writes)
	assert.Greater(t, theirs.Start.Processor, clusters*acmeWork*9/10, "its time is counted in fractions of a second that do not add up exactly")
	assert.Greater(t, theirs.Memory, int64(2*acmeHeap), "of both processes")
	assert.Less(t, theirs.Memory, int64(4*acmeHeap))
	assert.Greater(t, theirs.Took, ready, "no pod is Ready earlier")
	table := SideBySide(all)
	assert.Regexp(t, `(?m)^\| operator \|.*\n\|---.*\n\| tidb-groups \| 2 \| [0-9.]+ \| .*\n\| acme \| 2 \| [0-9.]+ \| 2\.0 \(0\.0\) \| .* \| – \|\n$`, table)
}
