package model

import (
	"slices"
	"strings"
)

// place names where a store is down to the isolation level, empty without one.
func (c *Cluster) place(s *Store) string {
	isolated := c.isolationLevel()
	if isolated == "" {
		return ""
	}
	labels := c.locationLabels()
	level := slices.Index(labels, isolated)
	var path []string
	for _, key := range labels[:level+1] {
		path = append(path, labelOf(s, key))
	}
	return strings.Join(path, "/")
}

// sharesPlace reports whether another voter of a region than the one on the store
// without lies in a store's place, where PD's isolation level allows one only.
func (c *Cluster) sharesPlace(r *Region, s *Store, without uint64) bool {
	where := c.place(s)
	return where != "" && slices.ContainsFunc(r.Peers, func(p Peer) bool {
		other := c.st.Stores[p.StoreID]
		return !p.Learner && p.StoreID != without && p.StoreID != s.Meta.ID && other != nil && c.place(other) == where
	})
}

// crowded returns a voter of a region that shares its place with another one; -1
// if none does.
func (c *Cluster) crowded(r *Region) int {
	if c.isolationLevel() == "" {
		return -1
	}
	return slices.IndexFunc(r.Peers, func(p Peer) bool {
		s := c.st.Stores[p.StoreID]
		return !p.Learner && s != nil && c.sharesPlace(r, s, 0)
	})
}
