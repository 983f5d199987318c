package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func TestServersRememberTheStateOfAnUpgrade(t *testing.T) {
	s := &model.Servers{}
	s.Start("a", "1")
	s.Start("b", "1")
	assert.Equal(t, "success!", s.Tell(true))
	assert.Contains(t, s.Tell(true), "duplicated operation and the cluster is already in upgrading state")
	assert.Equal(t, model.Upgrades{Open: true}, s.Upgrades())
	s.Stop("a")
	s.Start("a", "2")
	s.Stop("b")
	s.Start("b", "2")
	assert.Equal(t, "success!", s.Tell(false))
	assert.Contains(t, s.Tell(false), "already in normal state")
	assert.Equal(t, model.Upgrades{Ended: 1}, s.Upgrades())
}

func TestServersReportAnUpgradeThatWasNotAnnounced(t *testing.T) {
	s := &model.Servers{}
	s.Start("a", "1")
	s.Start("b", "2")
	assert.Equal(t, []string{"server b of 2 starts beside a of 1, untold"}, s.Upgrades().Wrong)
	s = &model.Servers{}
	s.Start("a", "1")
	s.Tell(true)
	s.Start("b", "2")
	s.Tell(false)
	assert.Equal(t, []string{"an upgrade is said to be over while servers of [1 2] run"}, s.Upgrades().Wrong)
}
