package campaign

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// The campaigns.
const (
	Crash   = "CRASH"
	Drop    = "DROP"
	Stale   = "STALE"
	Fault   = "FAULT"
	Kill    = "KILL"
	Delete  = "DELETE"
	Mutate  = "MUTATE"
	Upgrade = "UPGRADE"
	// HostilePD, Tenant and Delay have an attacker beside the scenario.
	HostilePD = "HOSTILEPD"
	Tenant    = "TENANT"
	Delay     = "DELAY"
)

// Names returns the names of all campaigns.
func Names() []string {
	return []string{Crash, Drop, Stale, Fault, Kill, Delete, Mutate, Upgrade, HostilePD, Tenant, Delay}
}

// Attempt is one attempt to break a promise.
type Attempt struct {
	// Campaign that it belongs to.
	Campaign string `json:"campaign"`
	// Scenario that is run.
	Scenario string `json:"scenario"`
	// Fault that is done to it.
	Fault string `json:"fault"`
}

// Replay is the command that makes the attempt again.
func (a Attempt) Replay() string {
	return fmt.Sprintf("make campaign CAMPAIGN=%q", "-scenario "+a.Scenario+" -fault "+a.Fault)
}

// hash is the same in every run: shards and samples go by it, so that they do
// not depend on what else there is.
func (a Attempt) hash(seed uint64) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", seed, a.Scenario, a.Fault))
	return binary.BigEndian.Uint64(sum[:])
}

// Finding is one thing that was not as promised.
type Finding struct {
	// Promise that is broken, P1 to P12.
	Promise string `json:"promise"`
	// What was found.
	What string `json:"what"`
}

// String renders the finding on one line.
func (f Finding) String() string { return f.Promise + ": " + f.What }

// Record is what came of an attempt.
type Record struct {
	Attempt
	// Commit that was tested.
	Commit string `json:"commit"`
	// Struck says that the run came by the fault's point. An attempt that did
	// not counts as none.
	Struck bool `json:"struck"`
	// Findings, none if all was as promised.
	Findings []Finding `json:"findings,omitempty"`
	// Broken is why the attempt could not be made, the rig's own failure.
	Broken string `json:"broken,omitempty"`
	// Took is how long it took.
	Took time.Duration `json:"took"`
	// Measured is what DELAY measures; nil of others.
	Measured *Measured `json:"measured,omitempty"`
}

// listTestedPromises returns the promises that attempts of a campaign could show to be
// broken.
func listTestedPromises(campaign string) []string {
	switch campaign {
	case Kill:
		return []string{"P2", "P3", "P5", "P6", "P9"}
	case Delete:
		return []string{"P2", "P3", "P8", "P9"}
	case Mutate:
		return []string{"P1", "P2", "P3", "P5", "P7", "P9", "P11"}
	case Upgrade:
		return []string{"P1", "P2", "P3", "P4", "P9"}
	case HostilePD, Tenant:
		return []string{"P10", "P12"}
	case Delay:
		return []string{"P10"}
	default:
		return []string{"P1", "P2", "P3", "P5", "P6", "P9"}
	}
}

// selectAttempts returns the attempts of one shard of several, shard counted from 1,
// and of them a sample; none is all.
func selectAttempts(all []Attempt, shard, shards, sample int, seed uint64) []Attempt {
	var out []Attempt
	for _, a := range all {
		if shards < 2 || a.hash(0)%uint64(shards) == uint64(shard-1) {
			out = append(out, a)
		}
	}
	if sample > 0 && sample < len(out) {
		slices.SortFunc(out, func(a, b Attempt) int {
			if a.hash(seed) < b.hash(seed) {
				return -1
			}
			return 1
		})
		out = out[:sample]
	}
	return out
}
