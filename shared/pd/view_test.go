package pd_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

func TestQuorumIsALeaderAndAMajority(t *testing.T) {
	for _, c := range []struct {
		healthy, members int
		want             bool
	}{{0, 0, false}, {1, 1, true}, {1, 2, false}, {2, 2, true}, {1, 3, false}, {2, 3, true}, {2, 4, false}, {3, 4, true}, {3, 5, true}} {
		view := pd.View{Leader: "a", Members: make([]pd.Member, c.members)}
		for i := range c.healthy {
			view.Members[i].Healthy = true
		}
		assert.Equal(t, c.want, view.HasQuorum(), fmt.Sprintf("%d of %d", c.healthy, c.members))
		view.Leader = ""
		assert.False(t, view.HasQuorum())
	}
}

func TestFindingInAView(t *testing.T) {
	view := pd.View{
		Members: []pd.Member{{Name: "", ID: "9"}, {Name: "a", ID: "1"}},
		Stores:  []pd.Store{{ID: "1", Address: "x:20160"}, {ID: "2"}},
	}
	m, ok := view.Member("a")
	assert.True(t, ok)
	assert.Equal(t, "1", m.ID)
	_, ok = view.Member("")
	assert.False(t, ok, "a member that has not started has no name to be found by")
	s, ok := view.StoreAt("x:20160")
	assert.True(t, ok)
	assert.Equal(t, "1", s.ID)
	_, ok = view.StoreAt("")
	assert.False(t, ok)
	_, ok = view.Store("3")
	assert.False(t, ok)
	s, ok = view.Store("2")
	assert.True(t, ok)
	assert.Equal(t, "2", s.ID)
}

func TestErrorsAreComparedByTheirText(t *testing.T) {
	a, b := pd.View{Err: errors.New("x")}, pd.View{Err: errors.New("x")}
	assert.True(t, a.Equal(b))
	assert.False(t, a.Equal(pd.View{}))
	assert.False(t, a.Equal(pd.View{Err: errors.New("y")}))
}

func TestRegionCountsMatterOnlyForAStoreThatLosesRegionsOrLeaders(t *testing.T) {
	load := func(leaders, regions int, state string, evicted ...string) pd.View {
		return pd.View{EvictLeader: evicted, Stores: []pd.Store{{ID: "4", State: state, Leaders: leaders, Regions: regions}, {ID: "5", State: pd.StateUp}}}
	}
	assert.True(t, load(3, 9, pd.StateUp).Equal(load(4, 10, pd.StateUp)), "busy")
	assert.True(t, load(3, 9, pd.StateUp, "5").Equal(load(4, 10, pd.StateUp, "5")), "another store is evicted")
	assert.False(t, load(3, 9, pd.StateUp, "4").Equal(load(2, 9, pd.StateUp, "4")), "evicted")
	assert.False(t, load(0, 9, pd.StateOffline).Equal(load(0, 8, pd.StateOffline)), "offline")
	assert.False(t, load(0, 9, pd.StateUp, "4").Equal(load(0, 9, pd.StateUp)), "no longer evicted")
}

func TestRulesAreCompared(t *testing.T) {
	rule := func(values ...string) pd.View {
		return pd.View{Rules: []pd.Rule{{Group: "tiflash", ID: "x", Constraints: []pd.Constraint{{Key: "engine", Op: "in", Values: values}}}}}
	}
	assert.True(t, rule("tiflash").Equal(rule("tiflash")))
	assert.False(t, rule("tiflash").Equal(rule("other")))
	assert.False(t, rule("tiflash").Equal(pd.View{}))
}
