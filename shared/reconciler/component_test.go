package reconciler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

type (
	group     = *v1alpha1.TiDBGroup
	plan      struct{ planning.Plan }
	status    = v1alpha1.TiDBGroupStatus
	component = Component[group, int, plan, status]
)

func complete() component {
	return component{
		Kind:     v1alpha1.KindTiDBGroup,
		StatusOf: func(g group) *status { return &g.Status },
		Observe:  func(context.Context, group) (int, error) { return 0, nil },
		Plan:     func(context.Context, group, *int) (plan, error) { return plan{}, nil },
		Act:      func(context.Context, group, int, *plan) step.Outcome { return step.Done() },
		Report: func(group, int, plan, step.Outcome, time.Time) execution.Findings[status] {
			return execution.Findings[status]{}
		},
	}
}

func TestAComponentNamesItsMissingField(t *testing.T) {
	assert.NoError(t, complete().check())
	for field, leaveOut := range map[string]func(*component){
		"StatusOf": func(c *component) { c.StatusOf = nil },
		"Observe":  func(c *component) { c.Observe = nil },
		"Plan":     func(c *component) { c.Plan = nil },
		"Act":      func(c *component) { c.Act = nil },
		"Report":   func(c *component) { c.Report = nil },
	} {
		c := complete()
		leaveOut(&c)
		assert.EqualError(t, c.Setup(operator.Env{}), "component TiDBGroup: field "+field+" is not set")
	}
	c := complete()
	c.Kind = "TiCIGroup"
	assert.EqualError(t, c.Setup(operator.Env{}), `kind "TiCIGroup" has no row in v1alpha1.ComponentTable`)
}

func TestWhatBelongsToOtherComponentsIsNotCached(t *testing.T) {
	for kind, wants := range cachedChildren(v1alpha1.ComponentInfo{Component: "tikv"}) {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		assert.True(t, wants.Label.Matches(labels.Set(workload.Labels(g))), "%T of the group", kind)
		assert.False(t, wants.Label.Matches(labels.Set(workload.Labels(&v1alpha1.PDGroup{ObjectMeta: g.ObjectMeta}))), "%T of another component", kind)
	}
}
