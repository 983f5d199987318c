package registry_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

var (
	groupName = types.NamespacedName{Namespace: "ns", Name: "db"}
	pdName    = types.NamespacedName{Namespace: "ns", Name: "pd"}
)

// sql is a registration of a server of the group.
func sql(pod string, revision int64) pd.Server {
	return pd.Server{Address: pod + ".db-peer.ns.svc:4000", Revision: revision}
}

func having(members ...string) registry.Group {
	g := registry.Group{Name: groupName, PD: pdName, Members: map[string]bool{}}
	for _, m := range members {
		g.Members[m] = true
	}
	return g
}

func TestDB19RegistrationsOfServersThatHaveLeftAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		server pd.Server
		gone   bool
	}{
		"a server without an Instance":      {sql("db-3", 1), true},
		"with the cluster's domain as well": {pd.Server{Address: "db-3.db-peer.ns.svc.cluster.local:4000"}, true},
		"a server of the group":             {sql("db-1", 1), false},
		"one of another group":              {pd.Server{Address: "db-3.db2-peer.ns.svc:4000"}, false},
		"one of another namespace":          {pd.Server{Address: "db-3.db-peer.other.svc:4000"}, false},
		"one that runs elsewhere":           {pd.Server{Address: "10.0.0.7:4000"}, false},
		"one with a user's name":            {pd.Server{Address: "mine.db-peer.ns.svc:4000"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.gone, len(having("db-0", "db-1").FindStale([]pd.Server{c.server})) == 1)
		})
	}
}

func TestDB19AServerIsDeadWhenNothingOfItChanges(t *testing.T) {
	alive := sql("db-3", 7)
	alive.Alive = true
	for name, c := range map[string]struct {
		now    pd.Server
		before []pd.Server
		dead   bool
	}{
		"without a lease for long":                 {sql("db-3", 7), []pd.Server{sql("db-3", 7)}, true},
		"seen for the first time":                  {sql("db-3", 7), nil, false},
		"its lease has just ended":                 {sql("db-3", 7), []pd.Server{alive}, false},
		"it has registered and gets its lease now": {sql("db-3", 8), []pd.Server{sql("db-3", 7)}, false},
		"it lives": {alive, []pd.Server{alive}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.dead, registry.IsDead(c.now, c.before)) })
	}
}
