package conformance_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known is a difference between the real PD that can be built, which is of April 2024
// and tells a release of its own, and the recorded one, which is v8.5.7. The doubles
// follow the recordings.
type known struct {
	// recordings and difference match what is meant; empty is every one.
	recordings, difference string
	why                    string
	// sometimes says that it depends on the machine's speed whether it is met.
	sometimes bool
}

// unknownThen are elements of recorded lists that PD of April 2024 does not have.
var unknownThen = map[string]string{
	"evict-stopping-store": "the scheduler came later",
	"tiflash":              "the empty group of TiFlash's rules was made by default later",
}

// knownDifferences are all that there may be. One that is not met is an error too, but
// for those that are met sometimes.
var knownDifferences = []known{
	{"", `^body\.(etcd_leader|leader|members\[\d\])\.(binary_version|deploy_path|git_hash): want `, "another build in another place", false},
	{"-(status|version)$", `^body\.(build_ts|git_hash|version): want `, "another build", false},
	{"v2-ready", "", "/pd/api/v2/ready came later: this PD knows no such path, and its members are not waited for", false},
	{"etcd-root-health|91-noquorum-health$", `^body\.reason: recorded: true, got: false$`, "etcd 3.4 gives no reason; it was 3.5", false},
	{"config", `(affinity-schedule-limit|enable-heartbeat-concurrent-runner|max-affinity-merge-region-size|patrol-region-worker-count|split-scatter-schedule-limit): recorded: true, got: false$`, "items that came later", false},
	{"config", `max-merge-region-(keys: want 540000, got 200000|size: want 54, got 20)$`, "the default was raised later", false},
	{"config", `schedulers-payload: recorded: false, got: true$`, "it was taken out of the answer later", false},
	{"config$", `^body\.(DisableStrictReconfigCheck|ElectionInterval|HeartbeatStreamBindInterval|LeaderPriorityCheckInterval|PreVote|TickInterval|WarningMsgs): recorded: false, got: true$`, "items of PD's own tests, later renamed or hidden", false},
	{"config$", `^body\.(election-interval|enable-prevote|tick-interval|controller\.ltb-token-rpc-max-delay|dashboard\.disable-custom-prom-addr): recorded: true, got: false$`, "items that came later, or had another name", false},
	{"config$", `^body\.(lease: want 5, got 3|tso-save-interval: want "5s", got "3s"|log\.file\.max-size: want 300, got 0)$`, "the default was raised later", false},
	{"hotspot-stores", `^body\.cpu-read-rate: recorded: true, got: false$`, "a rate that came later", false},
	{"40-evict-config$", "(want 307, got 301$|Moved Permanently)", "Go's own redirect was 301 before Go 1.26", false},
	{"91-noquorum-pd-api-v1-(health|status|ping)$", "", asksLeader, false},
	{"73-stores-just-after", `leader_(count|score|size): want .* one of them is zero$`, "who leads a region is told to followers only when it changes, and one that has just joined has not heard of all", true},
	{"evict.*config", `^body\.batch: recorded: true, got: false$`, "the size of a batch came later", false},
}

// strange are the differences of an answer that are not known, and says which are.
func strange(recording string, found []string, met map[int]bool) []string {
	return slices.DeleteFunc(found, func(difference string) bool {
		for i, k := range knownDifferences {
			if regexp.MustCompile(k.recordings).MatchString(recording) && regexp.MustCompile(k.difference).MatchString(difference) {
				met[i] = true
				return true
			}
		}
		return false
	})
}

// withoutUnknown drops the elements of a recorded list that a real PD does not have.
func (d *diff) withoutUnknown(want []any) []any {
	if !d.run.isReal() {
		return want
	}
	return slices.DeleteFunc(slices.Clone(want), func(v any) bool {
		for name := range unknownThen {
			if strings.Contains(nameOf(v), name) {
				return true
			}
		}
		return false
	})
}

// skipsReal shows a step that a real PD cannot be held to as a skipped test, and reports whether it did.
func (p *scenarioRun) skipsReal(t *testing.T, step, why string) bool {
	t.Helper()
	if !p.isReal() {
		return false
	}
	p.skipped++
	t.Run(step, func(t *testing.T) { t.Skip("not comparable on a real PD: " + why) })
	return true
}

// asksLeader is why a real PD without a leader does not answer for itself.
const asksLeader = "PD of April 2024 passes every call of /pd/api/v1 on to the leader, and without one says so; later it answers these itself"

// noReady is why a real PD is not asked whether it is ready.
const noReady = "PD of April 2024 has no /pd/api/v2/ready"

// ready asks a member whether it is ready.
func (p *scenarioRun) ready(t *testing.T, member string, want int) {
	t.Helper()
	if !p.skipsReal(t, "ready of "+member, noReady) {
		p.expect(t, want, http.MethodGet, member, "/pd/api/v2/ready", "")
	}
}
