package campaign

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// The ways in which a next version differs.
const (
	// sameAgain differs in nothing but that it starts again.
	sameAgain = "upgrade:same"
	// unowned finds objects whose fields have no owner, as after a write that was
	// no server-side apply, or a restore.
	unowned = "upgrade:unowned"
	// renamed finds objects whose fields are owned by an operator of another name.
	renamed = "upgrade:renamed"
	// unmarked finds objects without what the operators note on them about
	// their own writes.
	unmarked = "upgrade:unmarked"
	// rendered begins the attempts in which something is rendered otherwise.
	rendered = "upgrade:renders-other-"
)

// upgradePoints returns the attempts of UPGRADE on a scenario; next is the
// program of the next version, if there is one.
func upgradePoints(name, next string) []Attempt {
	faults := []string{sameAgain, unowned, renamed, unmarked}
	if next != "" {
		faults = append(faults, rendered+"pods", rendered+"files", rendered+"claims", rendered+"services")
	}
	var out []Attempt
	for _, fault := range faults {
		out = append(out, Attempt{Campaign: Upgrade, Scenario: name, Fault: fault})
	}
	return out
}

// upgrade makes one attempt: all operators end, the next version starts, and no
// pod, claim or Service may change.
func (c *campaign) upgrade(ctx context.Context, story scenario.Scenario, a Attempt, want *Reference) (Record, error) {
	return c.staged(ctx, story, a, faults.Fault{}, func(s *stage) (bool, []Finding, error) {
		if _, err := scenario.Run(ctx, s, story); err != nil {
			return true, nil, err
		}
		findings, err := c.takeOver(ctx, s, a.Fault, want)
		return true, findings, err
	})
}

func (c *campaign) takeOver(ctx context.Context, s *stage, fault string, want *Reference) ([]Finding, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	running := s.Running()
	if err := s.StopOperators(ctx, running...); err != nil {
		return nil, err
	}
	if err := s.age(ctx, fault); err != nil {
		return nil, err
	}
	before, err := s.kept()
	if err != nil {
		return nil, err
	}
	what, differs := strings.CutPrefix(fault, rendered)
	if differs {
		stop, err := c.startNext(ctx, s, what)
		if err != nil {
			return nil, err
		}
		defer stop()
	} else if err := s.StartOperators(ctx, running...); err != nil {
		return nil, err
	}
	quiet := s.quiet(ctx)
	var out []Finding
	if quiet != nil {
		out = append(out, Finding{Promise: "P9", What: quiet.Error()})
	}
	after, err := s.kept()
	if err != nil {
		return nil, err
	}
	for _, changed := range after.changes(before) {
		out = append(out, Finding{Promise: "P4", What: changed})
	}
	if differs {
		// That a group is not UpToDate any more is what it should say.
		as := *want
		as.Outcome = nil
		want = &as
	}
	return append(out, s.judge(ctx, nil, want)...), nil
}

// age makes the objects look as a former version left them.
func (s *stage) age(ctx context.Context, fault string) error {
	var all []*unstructured.Unstructured
	s.Watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			all = append(all, o.Get(key.Kind, key.Name).DeepCopy())
		}
	})
	for _, object := range all {
		var patch string
		switch fault {
		case unowned:
			patch = `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`
		case renamed:
			managers := object.GetManagedFields()
			for i := range managers {
				if slices.Contains(rig.Operators(), managers[i].Manager) {
					managers[i].Manager += "-before"
				}
			}
			text, err := encodeJSON(managers)
			if err != nil {
				return err
			}
			patch = `[{"op":"replace","path":"/metadata/managedFields","value":` + text + `}]`
		case unmarked:
			if _, marked := object.GetAnnotations()[v1alpha1.AnnotationApplied]; !marked {
				continue
			}
			patch = `[{"op":"remove","path":"/metadata/annotations/` + strings.ReplaceAll(v1alpha1.AnnotationApplied, "/", "~1") + `"}]`
		default:
			return nil
		}
		if err := s.User().Patch(ctx, object, client.RawPatch(types.JSONPatchType, []byte(patch)), owner); err != nil {
			return fmt.Errorf("make %s %s look old: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// kept is every pod, claim and Service, as far as an operator may not change it.
type kept struct {
	objects []scenario.Object
	uids    map[objects.Key]types.UID
}

func (s *stage) kept() (kept, error) {
	out := kept{uids: map[objects.Key]types.UID{}}
	kinds := []string{"Pod", "PersistentVolumeClaim", "Service"}
	var err error
	s.Watcher.Now(func(o objects.Set) {
		out.objects, err = scenario.Outcome(o, s.Namespace())
		for _, key := range o.Keys() {
			if slices.Contains(kinds, key.Kind) {
				out.uids[key] = o.Get(key.Kind, key.Name).GetUID()
			}
		}
	})
	out.objects = slices.DeleteFunc(out.objects, func(o scenario.Object) bool { return !slices.Contains(kinds, o.Key.Kind) })
	return out, err
}

// changes says what is not as it was.
func (k kept) changes(before kept) []string {
	out := scenario.Compare(k.objects, before.objects)
	for key, uid := range before.uids {
		if now := k.uids[key]; now != "" && now != uid {
			out = append(out, key.String()+" is another one")
		}
	}
	return out
}

// quiet waits until no object has had a new version for a while.
func (s *stage) quiet(ctx context.Context) error {
	const still = 3 * time.Second // longer than an operator takes to start working
	ctx, cancel := withRunningTimeout(ctx, bound, nil)
	defer cancel()
	for {
		before := s.Observed().Versions
		if !trySleep(ctx, still) {
			return fmt.Errorf("objects still change after %s", bound)
		}
		if s.Observed().Versions == before {
			return nil
		}
	}
}

// startNext starts the operators of the next version, in a process of its own.
func (c *campaign) startNext(ctx context.Context, s *stage, what string) (func(), error) {
	databases := s.Databases.List()
	if len(databases) != 1 {
		return nil, fmt.Errorf("start next version: there are %d PDs, not one", len(databases))
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, c.options.Next, "operators", c.plane.Kubeconfig, s.Namespace(), "http://"+databases[0].Address())
	cmd.Env = append(os.Environ(), nextVariable+"="+what)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = restTime
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start next version: %w", err)
	}
	return func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	}, nil
}
