// Command workload writes to a database and reads from it until it is stopped, and says what
// that has shown: failed statements, pauses, lost rows; see package workload.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/results"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

const (
	// startLimit bounds the way to the first row, and endLimit the reading of all rows.
	startLimit = 2 * time.Minute
	endLimit   = 5 * time.Minute
	// telling is how often the command says how it stands.
	telling = 10 * time.Second
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := runCommand(ctx, stop, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "workload:", err)
		return 1
	}
	return 0
}

// request is what the command line asks for.
type request struct {
	config   workload.Config
	duration time.Duration
	report   string
	svg      string
	write    bool
	commit   string
}

func parse(args []string) (request, error) {
	var r request
	var login workload.Login
	set := flag.NewFlagSet("workload", flag.ContinueOnError)
	dsn := set.String("dsn", "", "where and as whom, as user:password@tcp(host:port)/; instead of -address, -user and -password")
	set.StringVar(&login.Address, "address", "127.0.0.1:4000", "host and port")
	set.StringVar(&login.User, "user", "root", "user, who may create a database")
	set.StringVar(&login.Password, "password", os.Getenv("MYSQL_PWD"), "password; $MYSQL_PWD by default")
	set.StringVar(&r.config.Database, "database", "tidb_groups_workload", "database that is made; its tables numbers, transfers and accounts are dropped first")
	set.DurationVar(&r.duration, "duration", time.Minute, "how long it runs, if it is not interrupted before")
	set.DurationVar(&r.config.Interval, "interval", 500*time.Millisecond, "time between the turns of a session")
	set.DurationVar(&r.config.Deadline, "deadline", 30*time.Second, "how long a statement may take")
	set.DurationVar(&r.config.Lifetime, "lifetime", 5*time.Second, "how old connections become, but for the long ones; less than TiDB's graceful-wait-before-shutdown")
	set.DurationVar(&r.config.Slow, "slow", 500*time.Millisecond, "how long a pause has to be to be listed")
	set.IntVar(&r.config.Inserters, "inserters", 4, "sessions that insert")
	set.IntVar(&r.config.Transferrers, "transferrers", 2, "sessions that move money")
	set.IntVar(&r.config.Readers, "readers", 1, "sessions that add the money up")
	set.IntVar(&r.config.Prepared, "prepared", 2, "sessions with prepared statements on long connections")
	set.IntVar(&r.config.Split, "split", 0, "begin with 2^n regions for each table of rows")
	set.StringVar(&r.report, "report", "", "file for the report, as JSON")
	set.StringVar(&r.svg, "svg", "", "file for the picture")
	set.BoolVar(&r.write, "write", false, "only write the figures that make e2e has left into docs/reliability.md")
	set.StringVar(&r.commit, "commit", "", "with -write: which figures; by default those of the commit that git names")
	if err := set.Parse(args); err != nil {
		return r, err
	}
	if set.NArg() > 0 {
		return r, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if *dsn != "" {
		parsed, err := mysql.ParseDSN(*dsn)
		if err != nil {
			return r, fmt.Errorf("flag -dsn: %w; it is written as root:password@tcp(127.0.0.1:4000)/", err)
		}
		login = workload.Login{Address: parsed.Addr, User: parsed.User, Password: parsed.Passwd}
	}
	for _, n := range []*int{&r.config.Inserters, &r.config.Transferrers, &r.config.Readers, &r.config.Prepared} {
		if *n == 0 {
			*n = -1 // a flag says none with 0
		}
	}
	r.config.Login = func(context.Context) (workload.Login, error) { return login, nil }
	return r, nil
}

func runCommand(ctx context.Context, stop func(), args []string) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	if r.write {
		return writeFigures(ctx, r.commit)
	}
	begin, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not within %s", startLimit))
	defer cancel()
	running, err := workload.Start(begin, r.config)
	if err != nil {
		return err
	}
	printProgress(ctx, running, r.duration)
	stop() // a second interrupt ends the command at once
	last, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), endLimit, fmt.Errorf("not within %s", endLimit))
	defer cancel()
	report, err := running.Finish(last)
	printReport(report)
	if r.report != "" {
		err = errors.Join(err, results.WriteJSON(r.report, report))
	}
	if r.svg != "" {
		err = errors.Join(err, results.Draw(r.svg, report))
	}
	return errors.Join(err, report.Bad())
}

// printProgress says how it stands until the time is over.
func printProgress(ctx context.Context, running *workload.Run, duration time.Duration) {
	end, tell := time.NewTimer(duration), time.NewTicker(telling)
	defer end.Stop()
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-tell.C:
			fmt.Println(formatOperation(running.Now()))
		}
	}
}

// formatOperation tells of a workload so far.
func formatOperation(o workload.Operation) string {
	return fmt.Sprintf("%s: %d statements, %d failed, %d failed on long connections, %d connections refused, %d found closed; longest pause %s",
		o.Took.Round(time.Second), o.Statements, o.Failed, o.FailedLong, o.Refused, o.Reconnections, o.Pause.Duration)
}

func printReport(r workload.Report) {
	fmt.Printf("%s\n%s\n", r.Server, formatOperation(r.Whole))
	fmt.Printf("%d rows acknowledged, %d read back, %d lost; %d findings\n", r.Whole.Acknowledged, r.Whole.ReadBack, r.Whole.Lost, len(r.Findings))
	for _, f := range r.Failures {
		fmt.Printf("failed: %s %s after %s: %s\n", f.Due.Format("15:04:05.000"), f.Kind, f.Took.Duration, f.Error)
	}
	for _, p := range r.Pauses {
		fmt.Printf("pause: %s %s for %s\n", p.Began.Format("15:04:05.000"), p.Kind, p.Took.Duration)
	}
	for _, note := range r.Notes {
		fmt.Println("note:", note)
	}
}

// writeFigures writes the figures of a commit into docs.
func writeFigures(ctx context.Context, commit string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	if commit == "" {
		if commit, err = document.DescribeCommit(ctx, root); err != nil {
			return err
		}
	}
	if strings.HasSuffix(commit, document.Dirty) {
		return fmt.Errorf("figures of %s cannot be checked: commit first, or name a commit with -commit", commit)
	}
	dir, err := results.Dir()
	if err != nil {
		return err
	}
	all, err := results.Load(dir, commit)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s has no result of commit %s: name one with -commit", dir, commit)
	}
	return results.Write(filepath.Join(root, "docs"), all)
}
