package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// FloorController is the controller of Kubernetes that a control plane needs for [MeasureFloor].
const FloorController = "statefulset-controller"

// floorSet is a StatefulSet of one cluster of the floor.
type floorSet struct {
	name     string
	replicas int32
	data     bool // each pod has a claim
}

// floorSets are as many pods and claims as [cluster] has.
func floorSets() []floorSet {
	return []floorSet{{"pd", 3, true}, {"tikv", 3, true}, {"tidb", 2, false}}
}

// MeasureFloor measures how long Kubernetes alone takes for a case: StatefulSets of as many
// pods and claims, all at once and in no order, from the first one's creation until all pods
// are Ready. No operator runs.
func MeasureFloor(ctx context.Context, plane *controlplane.ControlPlane, c Case) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	r, err := rig.Open(ctx, plane, c.options("floor"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	began := time.Now()
	var pods []string
	for at := range c.Clusters {
		for _, set := range floorSets() {
			s := set.render(fmt.Sprintf("c%d-%s", at, set.name), r.Namespace())
			if err := r.User().Create(ctx, s, client.FieldOwner("user")); err != nil {
				return 0, fmt.Errorf("create StatefulSet %s: %w", s.Name, err)
			}
			for pod := range set.replicas {
				pods = append(pods, fmt.Sprintf("%s-%d", s.Name, pod))
			}
		}
	}
	err = r.Await(ctx, eachOnce(len(pods), func(o rig.Objects, at int) error {
		if !isPodReady(o.Get("Pod", pods[at])) {
			return fmt.Errorf("pod %s is not Ready", pods[at])
		}
		return nil
	}))
	return time.Since(began), err
}

func (s floorSet) render(name, namespace string) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	set.Spec.Replicas, set.Spec.ServiceName = ptr.To(s.replicas), name
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: idlePod()}
	if s.data {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	return set
}

func isPodReady(pod *unstructured.Unstructured) bool {
	if pod == nil {
		return false
	}
	c := objects.Condition(pod, string(corev1.PodReady))
	return c != nil && c.Status == metav1.ConditionTrue
}

// floorTable sets the time beside that of bare StatefulSets in the same run.
func floorTable(out *strings.Builder, runs []Run) {
	measured := func(r Result) bool { return r.Floor > 0 }
	if !slices.ContainsFunc(runs, func(r Run) bool { return slices.ContainsFunc(r.Results, measured) }) {
		return
	}
	out.WriteString("\n### Beside bare StatefulSets\n\n" +
		"The same pods and claims as StatefulSets, all at once, without order and without an operator, in the same run. " +
		"With the order (TiKV waits for PD, and TiDB for TiKV) each cluster takes at least 2 s more, as each pod takes 1 s.\n\n" +
		"| commit | clusters | StatefulSets Ready, s | all Ready, s | ratio |\n|---|---|---|---|---|\n")
	for _, run := range runs {
		for _, r := range run.Results {
			if measured(r) {
				fmt.Fprintf(out, "| %s | %d | %.1f | %.1f | %.1f |\n", run.label(), r.Clusters, r.Floor.Seconds(), r.Took.Seconds(), r.Took.Seconds()/r.Floor.Seconds())
			}
		}
	}
}
