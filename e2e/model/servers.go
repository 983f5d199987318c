package model

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Servers are the TiDB servers of one cluster, and what they know together of an
// upgrade: a real TiDB keeps it in PD's etcd, whichever server it was told to.
type Servers struct {
	mu        sync.Mutex
	versions  map[string]string // of the servers that run
	upgrading bool
	told      Upgrades
}

// Upgrades are what the servers have seen of upgrades.
type Upgrades struct {
	// Ended is how many were told of from the beginning to the end.
	Ended int
	// Open says that one was told of and not yet that it is over.
	Open bool
	// Wrong are the servers that started beside others of another version untold,
	// and the ends that were told of before there was one.
	Wrong []string
}

// Start is a server's process that starts.
func (s *Servers) Start(name, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil {
		s.versions = map[string]string{}
	}
	for _, other := range slices.Sorted(maps.Keys(s.versions)) {
		if other != name && s.versions[other] != version && !s.upgrading {
			s.told.Wrong = append(s.told.Wrong, fmt.Sprintf("server %s of %s starts beside %s of %s, untold", name, version, other, s.versions[other]))
			break
		}
	}
	s.versions[name] = version
}

// Stop is a server's process that ends.
func (s *Servers) Stop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, name)
}

// Tell answers POST /upgrade/start and /upgrade/finish as a real TiDB does, which
// does not mind being told twice.
func (s *Servers) Tell(upgrading bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upgrading == upgrading {
		return "It's a duplicated operation and the cluster is already in " + map[bool]string{true: "upgrading", false: "normal"}[upgrading] + " state."
	}
	s.upgrading = upgrading
	if !upgrading {
		s.told.Ended++
		if versions := slices.Compact(slices.Sorted(maps.Values(s.versions))); len(versions) > 1 {
			s.told.Wrong = append(s.told.Wrong, fmt.Sprintf("an upgrade is said to be over while servers of %v run", versions))
		}
	}
	return "success!"
}

// Upgrades returns what was seen of upgrades so far.
func (s *Servers) Upgrades() Upgrades {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.told
	out.Open, out.Wrong = s.upgrading, slices.Clone(s.told.Wrong)
	return out
}
