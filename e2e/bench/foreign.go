package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const (
	// foreignSize is the size of an foreign object, in bytes.
	foreignSize = 100 << 10
	// foreignNamespaces is over how many namespaces they are spread, that of the clusters
	// among them.
	foreignNamespaces = 10
	// foreignAtOnce is how many are created at a time.
	foreignAtOnce = 8
	// unsure is by how much the memory of a process may differ from run to run, in bytes.
	unsure = 8 << 20
)

// Foreign compares a case with the same case among foreign objects.
type Foreign struct {
	// Clusters of the case.
	Clusters int `json:"clusters"`
	// Each is how many ConfigMaps, Secrets and Pods of 100 KiB there were, of each kind.
	Each int `json:"each"`
	// How the operators ran.
	How string `json:"how"`
	// Found is what was counted without and with them.
	Found []Comparison `json:"found"`
}

// fillForeign makes foreign objects in the clusters' namespace and in others.
func fillForeign(ctx context.Context, plane *controlplane.ControlPlane, own string, each int) error {
	if each == 0 {
		return nil
	}
	c, err := client.New(plane.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	namespaces := []string{own}
	for range foreignNamespaces - 1 {
		name, err := controlplane.NewNamespace(ctx, c, "foreign", nil)
		if err != nil {
			return err
		}
		namespaces = append(namespaces, name)
	}
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(foreignAtOnce)
	for at := range each {
		for _, object := range foreignObjects(namespaces[at%len(namespaces)], fmt.Sprintf("%s-%d", foreignName, at)) {
			making.Go(func() error {
				if err := c.Create(ctx, object, client.FieldOwner("user")); err != nil {
					return fmt.Errorf("create foreign %T %s: %w", object, object.GetName(), err)
				}
				return nil
			})
		}
	}
	return making.Wait()
}

// foreignName begins the names of all foreign objects.
const foreignName = "foreign-object"

// foreignObjects are a ConfigMap, a Secret and a Pod.
func foreignObjects(namespace, name string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": foreignName}}
	ballast := strings.Repeat("x", foreignSize)
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy()}
	pod.Annotations = map[string]string{"example.com/ballast": ballast}
	pod.Spec = idlePod()
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}} // so that it never runs
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: *meta.DeepCopy(), Data: map[string]string{"ballast": ballast}},
		&corev1.Secret{ObjectMeta: *meta.DeepCopy(), Data: map[string][]byte{"ballast": []byte(ballast)}},
		pod,
	}
}

// idlePod is a foreign pod, as the Pod Security Standard "restricted" asks for.
func idlePod() corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

// ForeignCounts compares what operators wrote and read without foreign objects and among
// them, and the time.
func ForeignCounts(without, with Result, each int) Foreign {
	out := Foreign{Clusters: with.Clusters, Each: each, How: "in the process of the simulated world"}
	out.Found = append(compareCounts(without, with), compareTimes(without.Clusters, without.Took.Seconds(), with.Took.Seconds()))
	return out
}

// ForeignMemory compares the memory of operators in processes of their own, and the time. A
// process that has grown by half of what one kind of the objects takes holds them.
func ForeignMemory(without, with Processes, each int) Foreign {
	out := Foreign{Clusters: with.Clusters, Each: each, How: with.how()}
	out.Found = append(out.Found, compareTimes(with.Clusters, without.Took.Seconds(), with.Took.Seconds()))
	n := float64(with.Clusters)
	out.Found = append(out.Found, Comparison{Clusters: with.Clusters, What: "processor time per cluster, ms", Base: toMilliseconds(without.Start) / n, Now: toMilliseconds(with.Start) / n})
	held := max(int64(each)*foreignSize/2, unsure)
	for _, name := range slices.Sorted(maps.Keys(with.Memory)) {
		before, after := without.Memory[name], with.Memory[name]
		out.Found = append(out.Found, Comparison{
			Clusters: with.Clusters, What: "memory of " + name + ", MiB", Base: toMiB(before), Now: toMiB(after), Regression: after-before > held,
		})
	}
	if len(with.Memory) > 1 {
		out.Found = append(out.Found, Comparison{Clusters: with.Clusters, What: "memory of all processes, MiB", Base: toMiB(without.Total()), Now: toMiB(with.Total())})
	}
	return out
}

func toMiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// compareTimes compares the time to Ready, which nothing is held to.
func compareTimes(clusters int, before, after float64) Comparison {
	return Comparison{Clusters: clusters, What: "all Ready, s", Base: before, Now: after}
}

// Check is an error if foreign objects cost the operators anything.
func (f Foreign) Check() error {
	var errs []error
	for _, c := range f.Found {
		if c.Regression {
			errs = append(errs, fmt.Errorf("%s: %.1f without and %.1f with %d foreign ConfigMaps, Secrets and Pods: operators read or hold them", c.What, c.Base, c.Now, f.Each))
		}
	}
	return errors.Join(errs...)
}

// foreignTable tells what foreign objects cost.
func foreignTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Foreign) > 0 }) {
		return
	}
	fmt.Fprintf(out, "\n### Among foreign objects\n\n"+
		"So many ConfigMaps, Secrets and Pods of 100 KiB stand in %d namespaces, that of the clusters among them, before the operators start.\n\n"+
		"| commit | clusters | of each kind | operators | what | without | with |\n|---|---|---|---|---|---|---|\n", foreignNamespaces)
	for _, run := range runs {
		for _, f := range run.Foreign {
			for _, c := range f.Found {
				fmt.Fprintf(out, "| %s | %d | %d | %s | %s | %.1f | %.1f |\n", run.label(), f.Clusters, f.Each, f.How, c.What, c.Base, c.Now)
			}
		}
	}
}

// openForeign opens a rig among so many foreign objects as a case asks for, when no kind is
// just made any more.
func openForeign(ctx context.Context, plane *controlplane.ControlPlane, options rig.Options, c Case) (*rig.Rig, error) {
	r, err := rig.Open(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	err = fillForeign(ctx, plane, r.Namespace(), c.Foreign)
	if err == nil {
		err = awaitKinds(ctx, plane.Config)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
