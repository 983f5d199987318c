package rig_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// others are the pods of another operator, of which nothing is the suite's but the labels that a
// rig is told.
type others struct {
	t   *testing.T
	rig *rig.Rig
}

func (o others) create(object client.Object) {
	o.t.Helper()
	object.SetNamespace(o.rig.Namespace())
	require.NoError(o.t, o.rig.User().Create(o.t.Context(), object))
}

// set makes a StatefulSet with its pods, as its controller does.
func (o others) set(role string, replicas int32) (pods []string) {
	o.t.Helper()
	marks := map[string]string{"of": "db", "role": role}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db-" + role}}
	set.Spec.Replicas, set.Spec.Selector = ptr.To(replicas), &metav1.LabelSelector{MatchLabels: marks}
	set.Spec.Template.Labels = marks
	set.Spec.Template.Spec.Subdomain = set.Name + "-peer"
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "any", Image: "example.com/" + role + ":v8.5.7"}}
	o.create(set)
	for slot := range replicas {
		pods = append(pods, o.pod(set, slot))
	}
	return pods
}

// pod makes a pod of a StatefulSet, with its claim.
func (o others) pod(set *appsv1.StatefulSet, slot int32) string {
	o.t.Helper()
	name := fmt.Sprintf("%s-%d", set.Name, slot)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-" + name}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	o.create(claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set.Spec.Template.Labels}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
	o.create(pod)
	return name
}

// awaitReady waits until pods are Ready.
func (o others) awaitReady(pods ...string) {
	o.t.Helper()
	require.NoError(o.t, o.rig.Await(o.t.Context(), func(all rig.Objects) error {
		for _, pod := range pods {
			object := all.Get("Pod", pod)
			if object == nil {
				return fmt.Errorf("pod %s is not seen", pod)
			}
			if c := objects.Condition(object, string(corev1.PodReady)); c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("pod %s is not Ready", pod)
			}
		}
		return nil
	}))
}

// ask asks a path of who has a name, as a process of the operator does that resolves it.
func (o others) ask(name, port, path string, into any) {
	o.t.Helper()
	ip, found := o.rig.Resolve(name)
	require.True(o.t, found, name)
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+net.JoinHostPort(ip, port)+path, http.NoBody)
	require.NoError(o.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(o.t, http.StatusOK, response.StatusCode, path)
	if into != nil {
		require.NoError(o.t, json.NewDecoder(response.Body).Decode(into))
	}
}

func TestPodsOfAnotherOperatorAreMembers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	t.Cleanup(cancel)
	options := rig.Options{Name: "others", Unjudged: true, Privileged: true}
	for _, component := range []string{"pd", "tikv", "tidb"} {
		options.Members = append(options.Members, rig.Membership{
			Component: component, Selector: labels.SelectorFromSet(labels.Set{"role": component}),
			Service: func(pod map[string]string) string { return pod["of"] + "-pd" },
		})
	}
	r, err := rig.Open(ctx, plane, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	o := others{t, r}

	pods := o.set("pd", 3)
	o.awaitReady(slices.Concat(pods, o.set("tikv", 1), o.set("tidb", 1), o.set("helper", 1))...) // the last one is no member

	ns := r.Namespace()
	var health []struct {
		Name   string   `json:"name"`
		URLs   []string `json:"client_urls"`
		Health bool     `json:"health"`
	}
	o.ask("db-pd."+ns, "2379", "/pd/api/v1/health", &health)
	require.Len(t, health, 3)
	for _, member := range health {
		assert.Contains(t, pods, member.Name)
		assert.True(t, member.Health)
		assert.Equal(t, []string{"http://" + member.Name + ".db-pd-peer." + ns + ".svc:2379"}, member.URLs)
	}
	var stores struct {
		Stores []struct {
			Store struct {
				Address string `json:"address"`
				State   string `json:"state_name"`
				Version string `json:"version"`
			} `json:"store"`
		} `json:"stores"`
	}
	o.ask("DB-PD."+ns+".svc", "2379", "/pd/api/v1/stores", &stores)
	require.Len(t, stores.Stores, 1)
	assert.Equal(t, "db-tikv-0.db-tikv-peer."+ns+".svc:20160", stores.Stores[0].Store.Address)
	assert.Equal(t, "Up", stores.Stores[0].Store.State)
	assert.Equal(t, "8.5.7", stores.Stores[0].Store.Version)
	o.ask("db-tikv-0.db-tikv-peer."+ns, "20180", "/status", nil)
	o.ask("db-tidb-0.db-tidb-peer."+ns+".svc.cluster.local.", "10080", "/status", nil)
	for _, name := range []string{"other-pd." + ns, "db-tidb-1.db-tidb-peer." + ns, "db-pd", "a.b.c.d"} {
		_, found := r.Resolve(name)
		assert.False(t, found, name)
	}

	// Clients of etcd find no keys, on the same port.
	ip, found := r.Resolve("db-pd." + ns)
	require.True(t, found)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + net.JoinHostPort(ip, "2379")}, Context: ctx})
	require.NoError(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	keys, err := etcd.Get(ctx, "/topology/tidb", clientv3.WithPrefix())
	require.NoError(t, err)
	assert.Empty(t, keys.Kvs)

	// One that comes later joins.
	var set appsv1.StatefulSet
	require.NoError(t, r.User().Get(ctx, client.ObjectKey{Namespace: ns, Name: "db-pd"}, &set))
	o.awaitReady(o.pod(&set, 3))
	o.ask("db-pd."+ns, "2379", "/pd/api/v1/health", &health)
	assert.Len(t, health, 4)
	assert.Empty(t, r.Alarms())
}
