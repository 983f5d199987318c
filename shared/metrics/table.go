package metrics

import (
	"fmt"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Other stands for a value that is not in a label's set.
const Other = "Other"

// Metric describes one metric.
type Metric struct {
	// Name of the metric.
	Name string
	// Type in Prometheus' words.
	Type string
	// Labels, in their order.
	Labels []string
	// Help says what the value means and in which unit.
	Help string
	// By names the operators that have it.
	By string
}

// Names of the metrics.
const (
	condition   = "tidb_groups_condition"
	unconverged = "tidb_groups_unconverged_seconds"
	members     = "tidb_groups_members"
	memberState = "tidb_groups_member_state"
	regionsLeft = "tidb_groups_store_regions_left"
	disruption  = "tidb_groups_disruption_seconds"
	claimDays   = "tidb_groups_claim_days_left"
	certDays    = "tidb_groups_certificate_days_left"
	certLife    = "tidb_groups_certificate_lifetime_days"
	backupAge   = "tidb_groups_last_backup_seconds"
	logAge      = "tidb_groups_log_backup_checkpoint_seconds"
	outcomes    = "tidb_groups_reconcile_outcomes_total"
	calls       = "tidb_groups_pd_call_seconds"
)

// objectLabels are the labels of every series about an object.
func objectLabels(more ...string) []string {
	return append([]string{"kind", "namespace", "name", "cluster"}, more...)
}

// Table returns every metric of the suite's own.
func Table() []Metric {
	stores := strings.ToLower(strings.Join(v1alpha1.GroupKinds(func(c v1alpha1.ComponentInfo) bool { return c.Stores }), ", "))
	return []Metric{
		{condition, "gauge", objectLabels("condition", "status", "reason"), "1 for the status and reason that a condition of an object has.", "all"},
		{unconverged, "gauge", objectLabels(), "For how many seconds the object has not been UpToDate; 0 if it is.", "all"},
		{members, "gauge", objectLabels("state"), "Members of a group by state: desired, existing, ready, updated (at the revision that the spec asks for).", "of groups"},
		{memberState, "gauge", objectLabels("member", "state"), "1 for the state in which the database has a member of a group: of PD Leader, Follower, Removed; of a store Up, Disconnected, Down, Offline, Tombstone; of the others Serving, Starting.", "of groups"},
		{regionsLeft, "gauge", objectLabels("member"), "Regions on a store that is leaving; as old as the store's last heartbeat.", stores},
		{disruption, "gauge", objectLabels("member_kind", "member"), "For how many seconds a member has held the right to be disrupted in the cluster of a PDGroup; no series without one.", "pdgroup"},
		{claimDays, "gauge", objectLabels("member"), "Days until the claim of a member that has left is deleted; none if it stays.", "instance"},
		{certDays, "gauge", objectLabels("secret"), "Days until a certificate that a group uses expires, or one that has signed it; negative afterwards. As old as the status of the group.", "of groups"},
		{certLife, "gauge", objectLabels("secret"), "Lifetime of that certificate.", "of groups"},
		{backupAge, "gauge", objectLabels(), "For how many seconds the newest complete backup of a BackupSchedule has been complete; since the schedule was created if there is none.", "backup"},
		{logAge, "gauge", objectLabels(), "How many seconds ago the log of a LogBackup was complete, when last checked; since it was created if it never was. No series for one that must stop.", "backup"},
		{outcomes, "counter", []string{"kind", "step", "outcome"}, "Ends of reconciling, by step (plan, act, report) and outcome (Done, Wait, After, Fail, Stall).", "all"},
		{calls, "histogram", []string{"operator", "call", "code"}, "How long PD took to answer a call, in seconds, by call and HTTP status; none if it did not answer.", "of groups"},
	}
}

// ReconcileOutcomes is the row of the counter that package operator has.
func ReconcileOutcomes() Metric { return lookupMetric(outcomes) }

// lookupMetric returns a row of the Table.
func lookupMetric(name string) Metric {
	for _, m := range Table() {
		if m.Name == name {
			return m
		}
	}
	panic("no metric " + name) // a mistake in this package, found by its tests
}

// Markdown is the Table as docs/reference/metrics.md shows it.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| metric | type | operators | meaning |\n|---|---|---|---|\n")
	for _, m := range Table() {
		fmt.Fprintf(&b, "| `%s{%s}` | %s | %s | %s |\n", m.Name, strings.Join(m.Labels, ","), m.Type, m.By, m.Help)
	}
	return b.String()
}
