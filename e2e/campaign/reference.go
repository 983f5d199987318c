package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// Reference is what comes of a scenario when nothing goes wrong.
type Reference struct {
	// Outcome, Restarts and Bootstraps as in scenario.Result.
	Outcome    []scenario.Object `json:"outcome"`
	Restarts   map[string]int    `json:"restarts"`
	Bootstraps map[string]int    `json:"bootstraps"`
	// Writes and Events are the points at which something can go wrong.
	Writes []faults.Write `json:"writes"`
	Events []faults.Event `json:"events"`
	// Asked is what the operators ask the PD of a hostile cluster, before it is hostile.
	// It is the same for all scenarios, and kept apart.
	Asked []Asked `json:"-"`
	// Took is how long the longest run took.
	Took time.Duration `json:"took"`
}

// result returns the reference in the form that results are compared with.
func (r Reference) result() scenario.Result {
	return scenario.Result{Outcome: r.Outcome, Restarts: r.Restarts, Bootstraps: r.Bootstraps}
}

// points returns the attempts of a campaign that the reference gives rise to.
func (r Reference) points(campaign, name string) []Attempt {
	var out []Attempt
	add := func(f faults.Fault) {
		out = append(out, Attempt{Campaign: campaign, Scenario: name, Fault: f.String()})
	}
	switch campaign {
	case Crash:
		for _, kind := range []faults.Kind{faults.Crash, faults.CrashAll} {
			for _, w := range r.Writes {
				add(faults.Fault{Kind: kind, Write: w})
			}
		}
	case Fault:
		for _, kind := range faults.AnswerKinds() {
			for _, w := range r.Writes {
				add(faults.Fault{Kind: kind, Write: w})
			}
		}
	case Kill:
		for _, w := range r.Writes[r.firstPod():] {
			add(faults.Fault{Kind: faults.Kill, Write: w})
		}
	case Delete:
		for _, w := range r.Writes {
			add(faults.Fault{Kind: faults.Delete, Write: w})
		}
	case Drop:
		for _, e := range r.Events {
			add(faults.Fault{Kind: faults.Drop, Event: e})
		}
	case Stale:
		for _, e := range r.Events {
			add(faults.Fault{Kind: faults.Stale, Event: e, For: staleFor})
		}
	}
	return out
}

// firstPod is the first write that makes a pod: before it there is none to kill.
func (r Reference) firstPod() int {
	at := slices.IndexFunc(r.Writes, func(w faults.Write) bool {
		return w.Resource == "pods" && (w.Verb == apirequest.Create || w.Verb == apirequest.Patch)
	})
	if at < 0 {
		return len(r.Writes)
	}
	return at
}

// staleFor is how long a stale watch stands still: much longer than anything
// takes in the rig, so that the operator acts on what it knows.
const staleFor = 2 * time.Second

// campaignOf returns the campaign that a fault belongs to.
func campaignOf(fault string) string {
	kind, _, _ := strings.Cut(fault, ":")
	switch k := faults.Kind(kind); {
	case k == faults.Crash, k == faults.CrashAll:
		return Crash
	case k == faults.Drop:
		return Drop
	case k == faults.Kill:
		return Kill
	case k == faults.Delete:
		return Delete
	case k == faults.Stale:
		return Stale
	case kind == "mutate":
		return Mutate
	case kind == "upgrade":
		return Upgrade
	case kind == "hostilepd":
		return HostilePD
	case kind == "tenant":
		return Tenant
	case kind == "delay":
		return Delay
	default:
		return Fault
	}
}

// merge takes a second undisturbed run in. Two such runs differ in nothing but
// time, or the reference is worth nothing; which status writes became one is
// time.
func (r *Reference) merge(other Reference) error {
	if differences := other.result().Differences(r.result()); len(differences) > 0 {
		return fmt.Errorf("two undisturbed runs differ: %s", strings.Join(differences, "; "))
	}
	for _, w := range other.Writes {
		if !slices.Contains(r.Writes, w) {
			r.Writes = append(r.Writes, w)
		}
	}
	for _, e := range other.Events {
		if !slices.Contains(r.Events, e) {
			r.Events = append(r.Events, e)
		}
	}
	r.Took = max(r.Took, other.Took)
	return nil
}

// reference returns the reference of a scenario at a commit.
func (c *campaign) reference(ctx context.Context, s scenario.Scenario) (Reference, error) {
	var out Reference
	err := c.kept(s.Name, &out, func() error {
		for n := range max(1, c.options.References) {
			one, err := c.undisturbed(ctx, s)
			if err == nil && n > 0 {
				err = out.merge(one)
			} else if n == 0 {
				out = one
			}
			if err != nil {
				return fmt.Errorf("run scenario %s undisturbed: %w", s.Name, err)
			}
		}
		return nil
	})
	return out, err
}

// asked returns what the operators ask the PD of a hostile cluster, before it is hostile.
func (c *campaign) asked(ctx context.Context, s scenario.Scenario) ([]Asked, error) {
	var out []Asked
	err := c.kept("asked", &out, func() error {
		b, err := c.openBeside(ctx, s, &Reference{})
		if err == nil {
			out, err = b.listen(ctx)
		}
		if err = errors.Join(err, b.close()); err != nil {
			return fmt.Errorf("find out what PD is asked: %w", err)
		}
		return nil
	})
	return out, err
}

// asksPD says whether it matters what PD is asked.
func (c *campaign) asksPD() bool {
	return slices.Contains(c.options.Campaigns, HostilePD) || slices.ContainsFunc(c.options.Faults, func(fault string) bool { return campaignOf(fault) == HostilePD })
}

// kept finds something out that all attempts at a commit share. The first to ask for it
// keeps it beside the journal, so that all shards have the same points.
func (c *campaign) kept(name string, into any, find func() error) error {
	if c.options.Journal == "" || strings.HasSuffix(c.options.Commit, document.Dirty) {
		return find()
	}
	path := filepath.Join(filepath.Dir(c.options.Journal), "references", c.options.Commit, strings.ReplaceAll(name, "/", "+")+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("read reference: %w", err)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read reference: %w", err)
	}
	if err := find(); err != nil {
		return err
	}
	if text, err = json.Marshal(into); err != nil {
		return fmt.Errorf("encode reference: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("make directory of references: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	return nil
}
