package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Membership says which pods of another operator are members of databases. The suite's own
// pods tell that by their labels, and by arguments; those of others may run any script.
type Membership struct {
	// Component that the pods run: pd, tikv or tidb.
	Component string
	// Selector of the pods.
	Selector labels.Selector
	// Service is the name of PD's Service, by the labels of a pod: the database is known by it.
	Service func(pod map[string]string) string
}

// role is what a pod runs, and for which database.
type role struct {
	component string
	database  types.NamespacedName
	// foreign says that another operator has made the pod.
	foreign bool
}

// role returns what a pod runs. With another operator's members there are no pods of the suite.
func (a *actor) role(pod *corev1.Pod) role {
	if len(a.members) == 0 {
		return role{
			component: pod.Labels[v1alpha1.LabelComponent],
			database:  types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]},
		}
	}
	for _, m := range a.members {
		if m.Selector.Matches(labels.Set(pod.Labels)) {
			return role{component: m.Component, database: types.NamespacedName{Namespace: pod.Namespace, Name: m.Service(pod.Labels)}, foreign: true}
		}
	}
	return role{foreign: true} // it does nothing, and turns Ready
}

// initial returns the members with which a PD bootstraps its cluster; none for one that joins.
// Those of another operator are all pods of the first one's StatefulSet.
func (a *actor) initial(ctx context.Context, l launch) ([]string, error) {
	if !l.foreign {
		return initialCluster(containerArguments(l.pod)["--initial-cluster"]), nil
	}
	if known := l.db.initialMembers(); len(known) > 0 {
		if !slices.Contains(known, l.pod.Name) {
			return nil, nil
		}
		return known, nil
	}
	owner := metav1.GetControllerOf(l.pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return []string{l.pod.Name}, nil
	}
	var set appsv1.StatefulSet
	if err := a.live.Get(ctx, types.NamespacedName{Namespace: l.pod.Namespace, Name: owner.Name}, &set); err != nil {
		return nil, fmt.Errorf("get StatefulSet %s: %w", owner.Name, err)
	}
	var out []string
	for slot := range ptr.Deref(set.Spec.Replicas, 1) {
		out = append(out, names.Instance(set.Name, slot))
	}
	return out, nil
}

// initialMembers are those that the first PD that started has named; none before.
func (d *Database) initialMembers() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.members)
}

// advertised is the address by which a store wants to be known.
func (l launch) advertised() string {
	if !l.foreign {
		return containerArguments(l.pod)["--advertise-addr"]
	}
	host := names.ServiceHost(l.pod.Name+"."+l.pod.Spec.Subdomain, l.pod.Namespace, "")
	return names.HostPort(host, v1alpha1.PortTiKV)
}

// Resolve returns the address of a name that processes of another operator ask for: of PD's
// Service, as service.namespace, or of a pod, as pod.service.namespace. Both may end as names
// of Kubernetes do.
func (r *Rig) Resolve(name string) (ip string, found bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".cluster.local"), ".svc")
	switch part := strings.Split(name, "."); len(part) {
	case 2:
		return r.Databases.service(types.NamespacedName{Namespace: part[1], Name: part[0]})
	case 3:
		return r.actor.ip(types.NamespacedName{Namespace: part[2], Name: part[0]})
	default:
		return "", false
	}
}

// service is where the Service of a PD that there is listens.
func (d *Databases) service(group types.NamespacedName) (ip string, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	db := d.all[group]
	if db == nil {
		return "", false
	}
	ip, _, found = strings.Cut(db.service, ":")
	return ip, found
}

// ip is the address of a pod whose process runs.
func (a *actor) ip(pod types.NamespacedName) (ip string, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	running := a.processes[pod]
	if running == nil {
		return "", false
	}
	return running.ip, true
}
