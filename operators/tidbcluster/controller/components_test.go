package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// proxied is a cluster with TiProxies and TiCDC.
func proxied(c *v1alpha1.TidbCluster) {
	c.Spec.TiProxy = []v1alpha1.TiProxyEntry{{}}
	c.Spec.TiProxy[0].Version = "v1.3.0"
	c.Spec.TiCDC = []v1alpha1.TiCDCEntry{{Name: "archive"}}
}

func TestClientsConnectToTheProxiesIfThereAreAny(t *testing.T) {
	c := stored(t, proxied)
	s := made(c, step.Done())
	for _, g := range s.groups {
		g.GetGroupStatus().Version = g.GetComponentSpec().Version
		switch g := g.(type) {
		case *v1alpha1.TiDBGroup:
			g.Status.Endpoint = "basic-tidb.ns.svc:4000"
		case *v1alpha1.TiProxyGroup:
			g.Status.Endpoint = "basic-tiproxy.ns.svc:6000"
		}
	}
	status := reported(t, c, s).Status
	assert.Equal(t, "basic-tiproxy.ns.svc:6000", status.Endpoint)
	assert.Equal(t, "v8.5.7", status.Version, "TiProxy's releases are its own")

	c.Spec.TiProxy = nil
	assert.Equal(t, "basic-tidb.ns.svc:4000", reported(t, c, s).Status.Endpoint)
}

func TestEntriesOfProxiesAndCapturesBecomeGroups(t *testing.T) {
	var names []string
	for _, g := range renderGroups(stored(t, proxied)) {
		if g.GroupKind() == v1alpha1.KindTiProxyGroup || g.GroupKind() == v1alpha1.KindTiCDCGroup {
			names = append(names, g.GroupKind()+" "+g.GetName()+" "+g.GetComponentSpec().Version)
			assert.Equal(t, "basic-pd", g.PDGroupName())
		}
	}
	assert.Equal(t, []string{"TiProxyGroup basic-tiproxy v1.3.0", "TiCDCGroup basic-ticdc-archive v8.5.7"}, names)
}

func TestGroupsWithoutDataAreDeletedWithTheirEntry(t *testing.T) {
	c := stored(t, proxied)
	s := made(c, step.Done())
	c.Spec.TiProxy, c.Spec.TiCDC = nil, nil
	p := makePlan(c, s)
	var pruned []string
	for _, g := range p.Prune {
		pruned = append(pruned, g.GroupKind())
	}
	assert.ElementsMatch(t, []string{v1alpha1.KindTiProxyGroup, v1alpha1.KindTiCDCGroup}, pruned)
}

func TestAGroupOfEveryComponentIsMadeAndSuspended(t *testing.T) {
	w := begin(t)
	w.create(proxied)
	kinds := func(wanted func(v1alpha1.Group) bool) []string {
		var out []string
		for _, g := range w.groups() {
			if wanted(g) {
				out = append(out, g.GroupKind())
			}
		}
		slices.Sort(out)
		return out
	}
	all := slices.Sorted(slices.Values(v1alpha1.GroupKinds(func(v1alpha1.ComponentInfo) bool { return true })))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, all, kinds(func(v1alpha1.Group) bool { return true }))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	w.Change(func(c *v1alpha1.TidbCluster) { c.Spec.Suspended = true })
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, all, kinds(func(g v1alpha1.Group) bool { return g.GetComponentSpec().Suspended }))
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}
