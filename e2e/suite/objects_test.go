//go:build e2e

package suite_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
)

// awaitReady waits until whatever is in the namespace is Ready.
func awaitReady(t *testing.T, namespace string) {
	t.Helper()
	await(t, namespace, "everything Ready", func(nodes []*tree.Node) bool { return len(nodes) > 0 && tree.IsAllGood(nodes) })
}

// idleTime is how long an idle cluster is looked at: IDLE, else half a minute.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("IDLE")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "IDLE")
	return d
}

// idleLooks is how often an idle cluster is looked at when members come and go in it.
const idleLooks = 3

// turns returns when each pod last became ready or stopped being so, and each member
// healthy: what operators have to write about.
func turns(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var pods corev1.PodList
	require.NoError(t, shared.session.Client.List(t.Context(), &pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady {
				out["Pod/"+pods.Items[i].Name] = fmt.Sprintf("%s since %s", c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339))
			}
		}
	}
	var instances v1alpha1.InstanceList
	require.NoError(t, shared.session.Client.List(t.Context(), &instances, client.InNamespace(namespace)))
	for i := range instances.Items {
		if c := meta.FindStatusCondition(instances.Items[i].Status.Conditions, v1alpha1.ConditionHealthy); c != nil {
			out["Instance/"+instances.Items[i].Name] = fmt.Sprintf("%s since %s", c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339))
		}
	}
	return out
}

// quiet is for how long nothing may change before a cluster is called idle.
const quiet = 10 * time.Second

// pass lets time pass: what is measured here is that nothing happens in it.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Error("ended early")
	}
}

// versions returns the version of every object that the suite has in a
// namespace.
func versions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"TidbCluster": &v1alpha1.TidbClusterList{}, "PDGroup": &v1alpha1.PDGroupList{}, "TiKVGroup": &v1alpha1.TiKVGroupList{},
		"TiDBGroup": &v1alpha1.TiDBGroupList{}, "TiFlashGroup": &v1alpha1.TiFlashGroupList{}, "Instance": &v1alpha1.InstanceList{},
		"Pod": &corev1.PodList{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{}, "Service": &corev1.ServiceList{},
		"ConfigMap": &corev1.ConfigMapList{}, "ControllerRevision": &appsv1.ControllerRevisionList{},
	} {
		require.NoError(t, shared.session.Client.List(t.Context(), list, client.InNamespace(namespace)))
		require.NoError(t, meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err == nil {
				out[kind+"/"+m.GetName()] = version(kind, m)
			}
			return err
		}))
	}
	return out
}

// version is an object's resourceVersion; of a pod, who other than its kubelet
// wrote it, and when: kubelets report what they find out about fresh pods for a
// good while.
func version(kind string, m metav1.Object) string {
	if kind != "Pod" {
		return m.GetResourceVersion()
	}
	out := ""
	for _, f := range m.GetManagedFields() {
		if f.Manager != "kubelet" {
			out += f.Manager + f.Subresource + "@" + f.Time.UTC().Format(time.RFC3339) + " "
		}
	}
	return out
}

// scale scales an operator and waits until that is done.
func scale(t *testing.T, operator string, replicas int) {
	t.Helper()
	require.NoError(t, shared.session.ScaleOperator(t.Context(), operator, replicas))
}
