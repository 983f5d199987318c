package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// scrapeTimeout bounds reading the cache for a scrape.
const scrapeTimeout = 5 * time.Second

// collector computes metrics from the cache when it is scraped, so that there
// is no state to keep in step.
type collector struct {
	reader     client.Reader
	kind       string
	list       func() client.ObjectList
	now        func() time.Time
	conditions *prometheus.Desc
	oldest     *prometheus.Desc
}

// observe registers the metrics of an operator's kind. A second manager of one
// process, as in tests, takes over the kind's metrics.
func observe(registry prometheus.Registerer, env Env, definition Definition) error {
	c := &collector{
		reader: env.Client, kind: definition.Kind, list: definition.List, now: env.Now,
		conditions: prometheus.NewDesc("tidb_groups_objects",
			"Objects by the status of each of their conditions.", []string{"condition", "status"}, prometheus.Labels{"kind": definition.Kind}),
		oldest: prometheus.NewDesc("tidb_groups_oldest_unconverged_seconds",
			"For how long the object that has been not UpToDate the longest has been so; 0 if there is none.", nil, prometheus.Labels{"kind": definition.Kind}),
	}
	for {
		err := registry.Register(c)
		already := prometheus.AlreadyRegisteredError{}
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &already):
			return fmt.Errorf("register metrics of %s: %w", definition.Name, err)
		}
		registry.Unregister(already.ExistingCollector)
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.conditions
	ch <- c.oldest
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	list := c.list()
	if err := c.reader.List(ctx, list); err != nil {
		ch <- prometheus.NewInvalidMetric(c.conditions, fmt.Errorf("list %s: %w", c.kind, err))
		return
	}
	type key struct{ condition, status string }
	counts := map[key]int{}
	var oldest time.Duration
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		for _, condition := range conditionsOf(o) {
			counts[key{condition.Type, string(condition.Status)}]++
			if condition.Type == v1alpha1.ConditionUpToDate && condition.Status != metav1.ConditionTrue {
				oldest = max(oldest, c.now().Sub(condition.LastTransitionTime.Time))
			}
		}
		return nil
	})
	for k, n := range counts {
		ch <- prometheus.MustNewConstMetric(c.conditions, prometheus.GaugeValue, float64(n), k.condition, k.status)
	}
	ch <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, oldest.Seconds())
}

// conditionsOf returns the conditions of an object of the suite.
func conditionsOf(o runtime.Object) []metav1.Condition {
	switch x := o.(type) {
	case v1alpha1.Group:
		return x.GetGroupStatus().Conditions
	case *v1alpha1.Instance:
		return x.Status.Conditions
	case *v1alpha1.TidbCluster:
		return x.Status.Conditions
	}
	return nil
}
