package ticdc

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// tables are how many tables the changefeed of a cluster has.
	tables = 9
	// tablesPerTurn are how many of them leave a capture that is drained in one turn of the
	// owner.
	tablesPerTurn = 3
)

// cluster is what PD's etcd holds of the captures.
type cluster struct {
	// captures that live: their addresses by ID.
	captures map[string]string
	// owner is the one that schedules; empty if there is none.
	owner string
	// stopping are those that are being drained.
	stopping map[string]bool
	// tables by number: the capture that copies each; none in the beginning.
	tables map[int]string
	// failed says which capture has not handed over; empty if all have.
	failed string
}

// count returns how many tables a capture copies.
func (c cluster) count(id string) int {
	n := 0
	for _, holder := range c.tables {
		if holder == id {
			n++
		}
	}
	return n
}

// takers are the captures that may be given something, but for one.
func (c cluster) takers(not string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.captures)), func(id string) bool { return c.stopping[id] || id == not })
}

// turn returns which tables the owner gives to whom now: those of no capture at once, some of those
// that are drained, and one if the captures are uneven.
func (c cluster) turn() map[int]string {
	takers := c.takers("")
	if len(takers) == 0 {
		takers = slices.Sorted(maps.Keys(c.captures)) // all stop: it is copied until the last one has
	}
	if len(takers) == 0 {
		return nil
	}
	load := map[string]int{}
	for _, id := range takers {
		load[id] = c.count(id)
	}
	least := func() string {
		return slices.MinFunc(takers, func(a, b string) int { return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(a, b)) })
	}
	moves, drained := map[int]string{}, 0
	move := func(table int) {
		to := least()
		moves[table] = to
		load[to]++
	}
	for table := range tables {
		holder := c.tables[table]
		_, lives := c.captures[holder]
		_, takes := load[holder]
		switch {
		case !lives:
			move(table)
		case !takes && drained < tablesPerTurn:
			move(table)
			drained++
		}
	}
	if len(moves) > 0 {
		return moves
	}
	for table := range tables {
		if holder := c.tables[table]; load[holder] > load[least()]+1 {
			move(table)
			break
		}
	}
	return moves
}
