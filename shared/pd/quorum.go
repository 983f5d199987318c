package pd

import "slices"

// Majority returns how many of n members make a majority, by the rule of Raft.
func Majority(n int) int { return n/2 + 1 }

// CountHealthy counts the members that are healthy, but for those of the given IDs.
func (v View) CountHealthy(but ...string) int {
	n := 0
	for _, m := range v.Members {
		if m.Healthy && !slices.Contains(but, m.ID) {
			n++
		}
	}
	return n
}

// StartingMember returns a member that was added and has not started yet, and whether
// there is one: it has no name. It counts for what a majority is, and PD adds no
// other one while it is there. An initial member that has not started yet has a name and
// no client URL; it was never added.
func (v View) StartingMember() (Member, bool) {
	at := slices.IndexFunc(v.Members, func(m Member) bool { return m.Name == "" })
	if at < 0 {
		return Member{}, false
	}
	return v.Members[at], true
}
