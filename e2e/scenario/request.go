package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// Request is one kind of request of an operator to the API server.
type Request struct {
	// Operator that sends it.
	Operator string
	// Verb as RBAC names it.
	Verb string
	// Resource, with the subresource after a slash.
	Resource string
}

// String renders the request on one line.
func (r Request) String() string { return r.Operator + " " + r.Verb + " " + r.Resource }

// Writes says whether the request may change something of the cluster's. The
// patch of an Event does not count: client-go's recorder adds a repetition to
// one some seconds after it has happened.
func (r Request) Writes() bool {
	if r.Resource == "events" && r.Verb == apirequest.Patch {
		return false
	}
	return apirequest.Writes(r.Verb)
}

// ByVerb adds requests up by verb, those for Events apart.
func ByVerb(counts map[Request]int) string {
	sums := map[string]int{}
	for request, count := range counts {
		if request.Resource == "events" {
			sums["events"] += count
			continue
		}
		sums[request.Verb] += count
	}
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(sums)) {
		parts = append(parts, fmt.Sprintf("%s %d", verb, sums[verb]))
	}
	return strings.Join(parts, ", ")
}
