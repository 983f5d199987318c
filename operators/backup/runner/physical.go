package runner

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// logToTerminal has BR write its log where a pod's log is taken from.
const logToTerminal = "BR_LOG_TO_TERM=1"

// copyStores has BR lead the stores, which write their data, and completes the marker. The
// time stamp is given to BR, so that what it holds in PD is known by it.
func (c Command) copyStores(ctx context.Context, p *storage.Place, log io.Writer, m storage.Marker) (storage.Marker, error) {
	at, err := strconv.ParseUint(m.TSO, 10, 64)
	if err != nil {
		return m, fmt.Errorf("read the time stamp %q: %w", m.TSO, err)
	}
	paused, err := c.Cluster.ListPausedSchedulers(ctx)
	if err != nil {
		return m, err
	}
	// A run is not continued: for that BR would have PD hold data back for 72 minutes when it is
	// killed, in place of five.
	args := append([]string{"backup", "full", "--use-checkpoint=false", "--backupts", m.TSO}, c.leadArgs(p, "concurrency")...)
	err = c.runTool(ctx, log, append(p.Env(), logToTerminal), args)
	c.Cluster.RemoveLeftovers(ctx, log, func(s cluster.SafePoint) bool { return s.IsHeldByBR() && s.SafePoint == at-1 }, paused)
	if err != nil {
		return m, err
	}
	return p.Finish(ctx, m)
}

// checkVersion refuses a physical backup of a newer version than the cluster's.
func checkVersion(m *storage.Marker, server string) error {
	if database.IsOlder(server, m.Server) {
		return failure.New(v1alpha1.ReasonBackupUnreadable, "the backup was made in %s, and the cluster is %s: upgrade the cluster to that version first", m.Server, server)
	}
	return nil
}

// restoreStores has BR lead the stores, which read the backup.
func (c Command) restoreStores(ctx context.Context, p *storage.Place, target target, log io.Writer, m *storage.Marker) (result.Result, error) {
	args := restoreArgs("full", c.leadArgs(p, threadsFlag(target.version)))
	if failed, err := c.leadRestore(ctx, p, target.db, log, args); err != nil {
		return failed, err
	}
	return resultOfMarker(m), nil
}

// target is the database that is restored into, and its version.
type target struct {
	db      *sql.DB
	version string
}

// threadsFlag is how BR of a version calls the number of threads of a restore.
func threadsFlag(server string) string {
	if database.IsOlder(server, "TiDB-v7.6.0") {
		return "concurrency" // and has no flag of the other name
	}
	return "tikv-max-restore-concurrency"
}

// restoreArgs are the arguments of a restore. Users and passwords are those of the cluster, as after
// a logical restore: BR takes them from the backup otherwise, that of root too. A run is not
// continued: BR would leave garbage collection off for that when it fails, and have the next run
// leave the backup out before a log, also after its databases were dropped.
func restoreArgs(verb string, more []string) []string {
	return append([]string{"restore", verb, "--with-sys-table=false", "--use-checkpoint=false"}, more...)
}

// leadRestore has BR restore, and removes what it leaves in PD. The result is that of a failure.
func (c Command) leadRestore(ctx context.Context, p *storage.Place, db *sql.DB, log io.Writer, args []string) (result.Result, error) {
	since, err := database.CurrentTSO(ctx, db)
	if err != nil {
		return result.Result{}, err
	}
	paused, err := c.Cluster.ListPausedSchedulers(ctx)
	if err != nil {
		return result.Result{}, err
	}
	if c.needsEmpty() { // so no other restore is under way
		if err := database.ForgetRestores(ctx, db); err != nil {
			_, _ = fmt.Fprintf(log, "%v\n", err)
		}
	}
	err = c.runTool(ctx, log, append(p.Env(), logToTerminal), args)
	c.Cluster.RemoveLeftovers(ctx, log, func(s cluster.SafePoint) bool { return s.IsHeldByBR() && s.SafePoint+1 >= since }, paused)
	if err != nil {
		return failure.NewResult(err, v1alpha1.ReasonRunFailed, true, p.Secret), errBegun
	}
	return result.Result{}, nil
}

// leadArgs are the arguments that BR takes for backups and restores; threads is how it calls
// their number.
func (c Command) leadArgs(p *storage.Place, threads string) []string {
	out := append([]string{"--storage", p.URL()}, c.Cluster.Args()...)
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

// tableFilters say to BR what databases and tables say to Dumpling; none for all.
func (c Command) tableFilters() []string {
	out := slices.Clone(c.Filters)
	for _, name := range c.Databases {
		out = append(out, database.QuoteName(name)+".*")
	}
	for _, name := range c.Tables {
		schema, table, _ := strings.Cut(name, ".")
		out = append(out, database.QuoteName(schema)+"."+database.QuoteName(table))
	}
	if len(out) == 0 && c.AllowNonEmpty {
		// BR wants an empty cluster unless tables are named.
		out = append(out, "*.*", everything)
	}
	return out
}

// checkType refuses a backup of the other type than what is to read it.
func checkType(m *storage.Marker, physical bool) error {
	if m.Physical == physical {
		return nil
	}
	is, want := v1alpha1.BackupLogical, v1alpha1.BackupPhysical
	if m.Physical {
		is, want = want, is
	}
	return failure.New(v1alpha1.ReasonBackupUnreadable, "the backup is %s, and not %s: create another Restore, with spec.type %s", is, want, is)
}
