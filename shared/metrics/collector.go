package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// scrapeTimeout bounds reading the cache for a scrape.
const scrapeTimeout = 5 * time.Second

// day is the unit of what claims have left.
const day = 24 * time.Hour

// Source is what the metrics of one operator are read from.
type Source struct {
	// Kind of the operator's objects, and an empty list of them.
	Kind string
	List func() client.ObjectList
	// Reader of the operator's cache.
	Reader client.Reader
	// View returns what PD said last; nil for an operator that does not ask PD.
	View func(pdGroup types.NamespacedName) (pd.View, bool)
	// Expires returns when a claim of a former member is deleted, false if never; nil
	// for an operator that looks after no claims.
	Expires func(claim *corev1.PersistentVolumeClaim) (time.Time, bool)
	// Now is the clock.
	Now func() time.Time
}

// Register registers the metrics of an operator. A second operator of the same kind in
// one process, as in tests, takes them over.
func Register(registry prometheus.Registerer, source Source) error {
	c := newCollector(source)
	for {
		err := registry.Register(c)
		already := prometheus.AlreadyRegisteredError{}
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &already):
			return fmt.Errorf("register metrics of %s: %w", source.Kind, err)
		}
		registry.Unregister(already.ExistingCollector)
	}
}

// collector is a Source as Prometheus asks for it.
type collector struct {
	Source
	descs map[string]*prometheus.Desc
	// clusters of the TiDBGroups, in one scrape.
	clusters map[types.NamespacedName]string
}

func newCollector(source Source) *collector {
	c := &collector{Source: source, descs: map[string]*prometheus.Desc{}}
	c.describe(source.Kind, condition, unconverged)
	if source.hasGroups() {
		c.describe(source.Kind, members, memberState, certDays, certLife)
	}
	if source.hasStores() {
		c.describe(source.Kind, regionsLeft)
	}
	if source.Kind == v1alpha1.KindPDGroup {
		c.describe(source.Kind, disruption)
	}
	if source.Kind == v1alpha1.KindBackupSchedule {
		c.describe(source.Kind, backupAge)
	}
	if source.Kind == v1alpha1.KindLogBackup {
		c.describe(source.Kind, logAge)
	}
	if source.Expires != nil {
		c.describe("PersistentVolumeClaim", claimDays)
	}
	return c
}

// describe makes the descriptions of metrics about a kind, which is their first label.
func (c *collector) describe(kind string, names ...string) {
	for _, name := range names {
		m := lookupMetric(name)
		c.descs[name] = prometheus.NewDesc(name, m.Help, m.Labels[1:], prometheus.Labels{m.Labels[0]: kind})
	}
}

// hasGroups reports whether the operator is one of groups.
func (s Source) hasGroups() bool {
	_, known := v1alpha1.LookupComponent(s.Kind)
	return known
}

// hasStores reports whether the members are stores of PD.
func (s Source) hasStores() bool {
	component, _ := v1alpha1.LookupComponent(s.Kind)
	return component.Stores
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if err := c.collect(ctx, ch); err != nil {
		ch <- prometheus.NewInvalidMetric(c.descs[condition], err)
	}
}

func (c *collector) collect(ctx context.Context, ch chan<- prometheus.Metric) error {
	list := c.List()
	if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list %s: %w", c.Kind, err)
	}
	clusters, err := c.listClusters(ctx, list)
	if err != nil {
		return err
	}
	c = &collector{Source: c.Source, descs: c.descs, clusters: clusters}
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok {
			c.collectConditions(ch, object)
		}
		switch of := o.(type) {
		case *v1alpha1.BackupSchedule:
			c.sendGauge(ch, backupAge, c.Now().Sub(lastGood(of)).Seconds(), of)
		case *v1alpha1.LogBackup:
			if of.Spec.State != v1alpha1.LogStopped {
				c.sendGauge(ch, logAge, c.Now().Sub(lastCheckpoint(of)).Seconds(), of)
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("walk the list of %s: %w", c.Kind, err)
	}
	if err := c.collectGroups(ctx, ch, v1alpha1.GroupsIn(list)); err != nil {
		return err
	}
	return c.collectClaims(ctx, ch)
}

// throughGroup is the TiDBGroup that an object of backups goes through, empty for other objects.
func throughGroup(o client.Object) string {
	switch of := o.(type) {
	case v1alpha1.Run:
		return of.GetTiDBGroup()
	case *v1alpha1.BackupSchedule:
		return of.Spec.Template.TiDBGroup.Name
	}
	return ""
}

// listClusters returns the clusters of the TiDBGroups that objects of backups go through: nothing else
// on these names their cluster. An operator of other objects does not read TiDBGroups.
func (c *collector) listClusters(ctx context.Context, objects client.ObjectList) (map[types.NamespacedName]string, error) {
	passes := false
	if err := meta.EachListItem(objects, func(o runtime.Object) error {
		object, is := o.(client.Object)
		passes = passes || is && throughGroup(object) != ""
		return nil
	}); err != nil || !passes {
		return nil, err
	}
	var groups v1alpha1.TiDBGroupList
	if err := c.Reader.List(ctx, &groups, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TiDBGroups: %w", err)
	}
	out := map[types.NamespacedName]string{}
	for i := range groups.Items {
		out[client.ObjectKeyFromObject(&groups.Items[i])] = workload.ClusterOf(&groups.Items[i])
	}
	return out, nil
}

// clusterOf is the cluster of an object.
func (c *collector) clusterOf(o client.Object) string {
	if cluster, known := c.clusters[types.NamespacedName{Namespace: o.GetNamespace(), Name: throughGroup(o)}]; known {
		return cluster
	}
	return workload.ClusterOf(o)
}

// sendGauge gives one series of an object. A label that is no text, as what came to the API server
// as protobuf may be, would keep all metrics of the process from being read.
func (c *collector) sendGauge(ch chan<- prometheus.Metric, name string, value float64, o client.Object, labels ...string) {
	labels = append([]string{o.GetNamespace(), o.GetName(), c.clusterOf(o)}, labels...)
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "?")
	}
	ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
}

// collectConditions tells the conditions of an object of the suite.
func (c *collector) collectConditions(ch chan<- prometheus.Metric, o client.Object) {
	since := 0.0
	for _, x := range conditions.FromObject(o) {
		info, known := v1alpha1.LookupCondition(x.Type)
		if !known {
			continue
		}
		reason, status := x.Reason, x.Status
		if !info.Has(reason) {
			reason = Other
		}
		c.sendGauge(ch, condition, 1, o, x.Type, string(status), reason)
		if x.Type == v1alpha1.ConditionUpToDate && status != metav1.ConditionTrue {
			since = max(0, c.Now().Sub(x.LastTransitionTime.Time).Seconds())
		}
	}
	c.sendGauge(ch, unconverged, since, o)
}

// collectGroups reports how far groups are, and of their members.
func (c *collector) collectGroups(ctx context.Context, ch chan<- prometheus.Metric, groups []v1alpha1.Group) error {
	if !c.hasGroups() {
		return nil
	}
	byName := map[types.NamespacedName]v1alpha1.Group{}
	for _, g := range groups {
		byName[client.ObjectKeyFromObject(g)] = g
		status := g.GetGroupStatus()
		c.sendGauge(ch, members, float64(g.GetReplicas()), g, "desired")
		c.sendGauge(ch, members, float64(status.Replicas), g, "existing")
		c.sendGauge(ch, members, float64(status.ReadyReplicas), g, "ready")
		c.sendGauge(ch, members, float64(status.UpdatedReplicas), g, "updated")
		for _, certificate := range status.Certificates {
			c.sendGauge(ch, certDays, float64(certificate.NotAfter.Sub(c.Now()))/float64(day), g, certificate.SecretName)
			if begin := certificate.NotBefore; begin != nil {
				c.sendGauge(ch, certLife, float64(certificate.NotAfter.Sub(begin.Time))/float64(day), g, certificate.SecretName)
			}
		}
		if err := c.collectHolder(ctx, ch, g); err != nil {
			return err
		}
	}
	var instances v1alpha1.InstanceList
	if err := c.Reader.List(ctx, &instances, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Instances: %w", err)
	}
	for n := range instances.Items {
		i := &instances.Items[n]
		g := byName[types.NamespacedName{Namespace: i.Namespace, Name: i.Spec.Group.Name}]
		if g == nil || i.Spec.Group.Kind != c.Kind || i.Status.Member == nil {
			continue
		}
		c.sendGauge(ch, memberState, 1, g, i.Name, oneOf(i.Status.Member.State, knownMemberStates()))
		if store, leaves := c.leavingStore(g, i.Status.Member.ID); leaves {
			c.sendGauge(ch, regionsLeft, float64(store.Regions), g, i.Name)
		}
	}
	return nil
}

// leavingStore returns a store that PD was ordered to empty.
func (c *collector) leavingStore(g v1alpha1.Group, id string) (pd.Store, bool) {
	if !c.hasStores() || c.View == nil {
		return pd.Store{}, false
	}
	view, _ := c.View(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	store, known := view.Store(id)
	return store, known && store.State == pd.StateOffline
}

// collectHolder reports which member of a PDGroup's cluster has the right to be disrupted.
func (c *collector) collectHolder(ctx context.Context, ch chan<- prometheus.Metric, g v1alpha1.Group) error {
	if c.Kind != v1alpha1.KindPDGroup {
		return nil
	}
	lease, err := leaseclient.Read(ctx, c.Reader, g.GetNamespace(), g.GetName())
	if err != nil {
		return err
	}
	if !lease.IsFree() {
		c.sendGauge(ch, disruption, max(0, c.Now().Sub(lease.Since).Seconds()), g, oneOf(lease.Holder.Kind, v1alpha1.Kinds()), lease.Holder.Instance)
	}
	return nil
}

// collectClaims reports how long claims of former members stay.
func (c *collector) collectClaims(ctx context.Context, ch chan<- prometheus.Metric) error {
	if c.Expires == nil {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := c.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for i := range list.Items {
		claim := &list.Items[i]
		if at, ever := c.Expires(claim); ever {
			c.sendGauge(ch, claimDays, max(0, float64(at.Sub(c.Now()))/float64(day)), claim, claim.Labels[v1alpha1.LabelInstance])
		}
	}
	return nil
}

// knownMemberStates are what the operators of groups report of members in the database.
func knownMemberStates() []string {
	return []string{"Leader", "Follower", "Removed", "Serving", "Starting", pd.StateUp, pd.StateDisconnected, pd.StateDown, pd.StateOffline, pd.StateTombstone}
}

// oneOf returns a value of a closed set.
func oneOf(value string, set []string) string {
	if slices.Contains(set, value) {
		return value
	}
	return Other
}

// lastGood is when the newest complete backup of a schedule was completed, and when the schedule
// was created if there is none: one that never succeeds must be reported too.
func lastGood(s *v1alpha1.BackupSchedule) time.Time {
	if s.Status.LastBackupTime != nil {
		return s.Status.LastBackupTime.Time
	}
	return s.CreationTimestamp.Time
}

// lastCheckpoint is when the log of a LogBackup was last seen to be complete.
func lastCheckpoint(l *v1alpha1.LogBackup) time.Time {
	if l.Status.CheckpointTime == nil {
		return l.CreationTimestamp.Time
	}
	return l.Status.CheckpointTime.Time
}
