package runner

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// logToTerminal has BR write its log where a pod's log is taken from.
const logToTerminal = "BR_LOG_TO_TERM=1"

// position reads the time stamp that a transaction begins with now.
func position(ctx context.Context, db *sql.DB) (uint64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin a transaction: %w", err)
	}
	tso := ""
	err = tx.QueryRowContext(ctx, "SELECT @@tidb_current_ts").Scan(&tso)
	if err := errors.Join(err, tx.Rollback()); err != nil {
		return 0, fmt.Errorf("read the time stamp: %w", err)
	}
	at, err := strconv.ParseUint(tso, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the time stamp %q: %w", tso, err)
	}
	return at, nil
}

// copyStores has BR lead the stores, which write their data, and completes the marker. The
// time stamp is given to BR, so that what it holds in PD is known by it.
func (c Command) copyStores(ctx context.Context, p *place, log io.Writer, m marker) (marker, error) {
	at, err := strconv.ParseUint(m.TSO, 10, 64)
	if err != nil {
		return m, fmt.Errorf("read the time stamp %q: %w", m.TSO, err)
	}
	paused, err := c.Cluster.paused(ctx)
	if err != nil {
		return m, err
	}
	args := append([]string{"backup", "full", "--backupts", m.TSO}, c.leadArgs(p, "concurrency")...)
	err = c.runTool(ctx, log, append(p.env(), logToTerminal), args)
	c.Cluster.tidy(ctx, log, func(s safePoint) bool { return s.byBR() && s.SafePoint == at-1 }, paused)
	if err != nil {
		return m, err
	}
	return p.finish(ctx, m)
}

// readable refuses a physical backup of a newer version than the cluster's.
func (m *marker) readable(server string) error {
	if older(server, m.Server) {
		return fail(v1alpha1.ReasonBackupUnreadable, "the backup was made in %s, and the cluster is %s: upgrade the cluster to that version first", m.Server, server)
	}
	return nil
}

// restoreStores has BR lead the stores, which read the backup.
func (c Command) restoreStores(ctx context.Context, p *place, db *sql.DB, log io.Writer, m *marker) (result.Result, error) {
	// Users and passwords are those of the cluster, as after a logical restore.
	args := append([]string{"restore", "full", "--with-sys-table=false"}, c.leadArgs(p, "tikv-max-restore-concurrency")...)
	if failed, err := c.leadRestore(ctx, p, db, log, args); err != nil {
		return failed, err
	}
	return resultOfMarker(m), nil
}

// leadRestore has BR restore, and removes what it leaves in PD. The result is that of a failure.
func (c Command) leadRestore(ctx context.Context, p *place, db *sql.DB, log io.Writer, args []string) (result.Result, error) {
	since, err := position(ctx, db)
	if err != nil {
		return result.Result{}, err
	}
	paused, err := c.Cluster.paused(ctx)
	if err != nil {
		return result.Result{}, err
	}
	err = c.runTool(ctx, log, append(p.env(), logToTerminal), args)
	c.Cluster.tidy(ctx, log, func(s safePoint) bool { return s.byBR() && s.SafePoint+1 >= since }, paused)
	if err != nil {
		return resultOf(err, v1alpha1.ReasonRunFailed, true, p.secret), errBegun
	}
	return result.Result{}, nil
}

// leadArgs are the arguments that BR takes for backups and restores; threads is how it calls
// their number.
func (c Command) leadArgs(p *place, threads string) []string {
	out := append([]string{"--storage", p.url()}, c.Cluster.args()...)
	for _, flag := range []struct{ name, value string }{{threads, c.Cluster.Concurrency}, {"ratelimit", c.Cluster.RateLimit}, {"checksum", c.Cluster.Checksum}} {
		if flag.value != "" {
			out = append(out, "--"+flag.name+"="+flag.value)
		}
	}
	for _, filter := range c.tableFilters() {
		out = append(out, "--filter", filter)
	}
	return out
}

// args are the arguments by which BR reaches the cluster.
func (c Cluster) args() []string {
	_, address, _ := strings.Cut(c.PD, "://")
	out := []string{"--pd", address}
	if dir := c.TLS; dir != "" {
		out = append(out, "--ca", filepath.Join(dir, v1alpha1.TLSKeyCA), "--cert", filepath.Join(dir, v1alpha1.TLSKeyCert), "--key", filepath.Join(dir, v1alpha1.TLSKeyKey))
	}
	return out
}

// tableFilters say to BR what databases and tables say to Dumpling; none for all.
func (c Command) tableFilters() []string {
	out := slices.Clone(c.Filters)
	for _, name := range c.Databases {
		out = append(out, quote(name)+".*")
	}
	for _, name := range c.Tables {
		database, table, _ := strings.Cut(name, ".")
		out = append(out, quote(database)+"."+quote(table))
	}
	if len(out) == 0 && c.AllowNonEmpty {
		// BR wants an empty cluster unless it is told which tables are meant.
		out = append(out, "*.*", everything)
	}
	return out
}

// suits refuses a backup of the other type than what is to read it.
func (m *marker) suits(physical bool) error {
	if m.Physical == physical {
		return nil
	}
	is, want := v1alpha1.BackupLogical, v1alpha1.BackupPhysical
	if m.Physical {
		is, want = want, is
	}
	return fail(v1alpha1.ReasonBackupUnreadable, "the backup is %s, and not %s: create another Restore, with spec.type %s", is, want, is)
}

// older reports whether a server's version is below that of another, as far as both tell it.
func older(server, than string) bool {
	a, b := versionOf(server), versionOf(than)
	return a != nil && b != nil && slices.Compare(a, b) < 0
}

// versionOf reads major and minor of what VERSION() of a TiDB says, such as
// 8.0.11-TiDB-v8.5.7; nil if it says something else.
func versionOf(said string) []int {
	found := regexp.MustCompile(`TiDB-v(\d+)[.](\d+)[.]`).FindStringSubmatch(said)
	if found == nil {
		return nil
	}
	major, err := strconv.Atoi(found[1])
	minor, err2 := strconv.Atoi(found[2])
	if cmp.Or(err, err2) != nil {
		return nil
	}
	return []int{major, minor}
}
