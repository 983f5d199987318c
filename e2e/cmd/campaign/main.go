// Command campaign tries to break the suite's promises at every point of a
// scenario at which something can go wrong; see package campaign.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/e2e/campaign"
	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

func main() { os.Exit(run()) }

// errFailures is why the command fails when all went well but the attempts.
var errFailures = errors.New("promises were broken")

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	var err error
	if args := os.Args[1:]; len(args) == 4 && args[0] == "operators" {
		err = campaign.RunOperators(ctx, args[1], args[2], args[3])
	} else {
		err = runCommand(ctx, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		return 1
	}
	return 0
}

// request is what the command line asks for.
type request struct {
	campaign.Options
	write bool
}

func parse(args []string) (request, error) {
	var r request
	set := flag.NewFlagSet("campaign", flag.ContinueOnError)
	campaigns := set.String("campaign", "CRASH,DROP", "comma-separated: "+strings.Join(campaign.Names(), ", ")+" or all")
	set.Func("scenario", "a scenario of e2e/scenarios, or one order of it; may be given several times (default bootstrap)", appendTo(&r.Scenarios))
	set.Func("fault", "make this attempt alone; may be given several times", appendTo(&r.Faults))
	shard := set.String("shard", "", "run one part of several, as 2/8")
	set.IntVar(&r.Sample, "sample", 0, "attempts of each campaign and scenario; 0 is all")
	set.Uint64Var(&r.Seed, "seed", 1, "which sample")
	set.IntVar(&r.Parallel, "parallel", 2*runtime.NumCPU(), "attempts at once")
	set.IntVar(&r.References, "references", 3, "undisturbed runs that the points are taken from")
	set.StringVar(&r.Journal, "journal", "", "file of finished attempts, to go on with and to share between shards; by default in the cache directory")
	set.StringVar(&r.Commit, "commit", "", "what is tested; by default what git says")
	set.BoolVar(&r.Verbose, "v", false, "print every attempt")
	set.BoolVar(&r.write, "write", false, "only write the journal's figures into docs/reliability.md")
	if err := set.Parse(args); err != nil {
		return r, err
	}
	if set.NArg() > 0 {
		return r, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if len(r.Scenarios) == 0 {
		r.Scenarios = []string{"bootstrap"}
	}
	r.Campaigns = strings.Split(*campaigns, ",")
	if slices.Contains(r.Campaigns, "all") {
		r.Campaigns = campaign.Names()
	}
	for _, name := range r.Campaigns {
		if !slices.Contains(campaign.Names(), name) {
			return r, fmt.Errorf("there is no campaign %q", name)
		}
	}
	if *shard != "" {
		if _, err := fmt.Sscanf(*shard, "%d/%d", &r.Shard, &r.Shards); err != nil || r.Shard < 1 || r.Shard > r.Shards {
			return r, fmt.Errorf("flag -shard is %q: it must be like 2/8", *shard)
		}
	}
	return r, nil
}

func appendTo(into *[]string) func(string) error {
	return func(one string) error {
		*into = append(*into, one)
		return nil
	}
}

func runCommand(ctx context.Context, args []string) error {
	r, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	if r.Commit == "" {
		if r.Commit, err = document.DescribeCommit(ctx, root); err != nil {
			return err
		}
	}
	if r.Journal == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("find a place for the journal: %w", err)
		}
		r.Journal = filepath.Join(cache, "tidb-groups", "campaign", "journal.jsonl")
	}
	if r.write {
		return writeFigures(root, r)
	}
	r.Out = os.Stdout
	return runCampaigns(ctx, root, r.Options)
}

// runCampaigns starts a control plane and runs the campaigns on it.
func runCampaigns(ctx context.Context, root string, options campaign.Options) (err error) {
	begin := time.Now()
	options.CRDs = filepath.Join(root, "deploy", "crds")
	upgrade := func(fault string) bool { return strings.HasPrefix(fault, "upgrade:") }
	if slices.Contains(options.Campaigns, campaign.Upgrade) || slices.ContainsFunc(options.Faults, upgrade) {
		dir, err := os.MkdirTemp("", "tidb-groups-next-")
		if err != nil {
			return fmt.Errorf("make room for the next version: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // only temporary files
		if options.Next, err = campaign.BuildNext(ctx, root, dir); err != nil {
			return err
		}
	}
	planeOptions, err := rig.PlaneOptions()
	if err != nil {
		return err
	}
	controlplane.CollectLess() // processor time is what attempts are made of
	plane, err := controlplane.Start(ctx, planeOptions)
	if err != nil {
		return err
	}
	records, err := campaign.Run(ctx, plane, options)
	err = errors.Join(err, plane.Stop())
	fmt.Printf("\n%s at %s, %d attempts in %s and %s of processor time, with all that was started:\n\n%s", strings.Join(options.Scenarios, ", "), options.Commit,
		len(records), time.Since(begin).Round(time.Second), processorTime().Round(time.Second), campaign.RenderTables(campaign.Summarize(records)))
	if err == nil && slices.ContainsFunc(records, func(r campaign.Record) bool { return len(r.Findings) > 0 || r.Broken != "" }) {
		return errFailures
	}
	return err
}

// processorTime is the time that this process and those that it has started and seen
// end have kept processors busy.
func processorTime() time.Duration {
	var out time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			out += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return out
}

// writeFigures writes the figures of the tested commit into the documents.
func writeFigures(root string, r request) error {
	records, err := campaign.ReadJournal(r.Journal)
	if err != nil {
		return err
	}
	if strings.HasSuffix(r.Commit, document.Dirty) {
		return fmt.Errorf("figures of %s cannot be checked: commit first, or name a commit with -commit", r.Commit)
	}
	records = slices.DeleteFunc(records, func(record campaign.Record) bool { return record.Commit != r.Commit })
	if len(records) == 0 {
		return fmt.Errorf("journal %s has no attempt of commit %s: name one with -commit", r.Journal, r.Commit)
	}
	return campaign.Write(campaign.Summarize(records), filepath.Join(root, "docs", "reliability.json"), filepath.Join(root, "docs", "reliability.md"))
}
