package observation

import (
	"slices"
	"time"
)

// maxHeld bounds how many regions are watched one by one.
const maxHeld = 200

// Hold is how long the restart of a member has been held back because it is not safe. It
// is kept in memory and begins again after a restart of the operator.
type Hold struct {
	// Instance that is held back; empty if none is.
	Instance string
	// Since when a restart is held back.
	Since time.Time
	// Regions that are in the way, by ID, and since when each is without a break.
	Regions map[string]time.Time
}

// Next returns the Hold a moment later. The old one does not change.
func (h Hold) Next(now time.Time, instance string, regions []string) Hold {
	if instance == "" {
		return Hold{}
	}
	next := Hold{Instance: instance, Since: h.Since, Regions: map[string]time.Time{}}
	if h.Instance == "" {
		next.Since = now
	}
	keep := func(known bool) {
		for _, id := range regions {
			since, was := h.Regions[id]
			if was != known || len(next.Regions) == maxHeld {
				continue
			}
			if !was {
				since = now
			}
			next.Regions[id] = since
		}
	}
	keep(true)
	keep(false)
	return next
}

// OlderThan returns the regions that have been in the way for some time, by ID.
func (h Hold) OlderThan(now time.Time, than time.Duration) []string {
	var out []string
	for id, since := range h.Regions {
		if now.Sub(since) >= than {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
