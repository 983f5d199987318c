package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// afterwards is for how long what a wave still writes is counted as its own: words of a status
// wait, and then there is nothing left.
const afterwards = 2 * status.MessageDelay

// Growth tells what clusters cost among those that are there already.
type Growth struct {
	// Waves of clusters, one after the other.
	Waves []Wave `json:"waves"`
	// Idle is what all clusters used in the end, when nothing was left to do; nil if not measured.
	Idle *Cost `json:"idle,omitempty"`
	// Edits were made while one more wave came in the end; nil if none.
	Edits *Edits `json:"-"`
}

// Wave are clusters that were created at once when all others were Ready.
type Wave struct {
	// There were so many clusters before, and Clusters came.
	There    int `json:"there"`
	Clusters int `json:"clusters"`
	// Took is the time from the first one's creation until all were Ready.
	Took time.Duration `json:"took"`
	// Cost is what was asked and used until then and for two seconds more, by the others too.
	Cost Cost `json:"cost"`
	// Memory is what each process keeps for itself in the end, without its code, in bytes.
	Memory map[string]int64 `json:"memory"`
}

// here is the process of the benchmark among those whose memory is told.
const here = "benchmark"

// String tells it on a line.
func (w Wave) String() string {
	return fmt.Sprintf("%4d clusters beside %4d: ", w.Clusters, w.There) + w.figures("Ready in %5.1f s, per cluster %.1f writes, %.1f reads, %.0f reconciles, %.0f ms of operators, %.0f ms of kube-apiserver; it keeps %d MiB, etcd %d, the benchmark with its operators %d")
}

// figures puts what a wave took, what each of its clusters cost and what the processes keep
// into a format.
func (w Wave) figures(format string) string {
	n := float64(w.Clusters)
	return fmt.Sprintf(format, w.Took.Seconds(),
		float64(w.Cost.Writes)/n, float64(w.Cost.Reads)/n, float64(w.Cost.reconciled())/n, toMilliseconds(w.Cost.Operators())/n, toMilliseconds(w.Cost.ControlPlane[apiserver])/n,
		w.Memory[apiserver]>>20, w.Memory[etcd]>>20, w.Memory[here]>>20)
}

// Names of the control plane's processes.
const (
	apiserver = "kube-apiserver"
	etcd      = "etcd"
)

// MeasureGrowth creates the clusters of a case so many at a time, the next ones when these are
// Ready, and tells of each wave when it is.
func MeasureGrowth(ctx context.Context, plane *controlplane.ControlPlane, c Case, atATime int, tell func(Wave)) (out Growth, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	seen, options := newReactions(), c.options("growth")
	waves := (c.Clusters + atATime - 1) / atATime
	if c.Edits > 0 {
		waves++
		options.Reach = seen.reach
	}
	in := make([]*rig.Rig, waves)
	defer func() {
		for _, r := range in {
			if r != nil {
				err = errors.Join(err, r.Close())
			}
		}
	}()
	for at := 1; at < waves; at++ {
		if in[at], err = rig.Open(ctx, plane, c.options("growth")); err != nil {
			return out, err
		}
	}
	options.Neighbours = in[1:]
	r, err := openForeign(ctx, plane, options, c)
	if err != nil {
		return out, err
	}
	in[0] = r
	if err := r.StartOperators(ctx, rig.Operators()...); err != nil {
		return out, err
	}
	m := meter{rig: r, others: in[1:], plane: plane}
	for at, there := 0, 0; there < c.Clusters; at, there = at+1, there+atATime {
		w, err := m.wave(ctx, in[at], there, min(atATime, c.Clusters-there))
		if err != nil {
			return out, err
		}
		tell(w)
		w.Cost.Functions, w.Cost.Profile = nil, nil // of hundreds they are not read any more
		out.Waves = append(out.Waves, w)
	}
	if c.Edits > 0 {
		e := editor{rig: r, seen: seen}
		if err := e.begin(ctx); err != nil {
			return out, err
		}
		out.Edits = &Edits{Clusters: c.Clusters + atATime}
		out.Edits.Starting, err = e.during(ctx, c.Edits, func() error {
			_, err := m.wave(ctx, in[waves-1], c.Clusters, atATime)
			return err
		})
		if err != nil {
			return out, err
		}
		c.Clusters += atATime + 1
	}
	if c.Idle > 0 {
		if out.Idle, err = optionalCost(m.measure(func() error { return waitFor(ctx, c.Idle) })); err != nil {
			return out, err
		}
	}
	return out, checkObserved(nil, mergeObserved(in), c.Clusters)
}

// mergeObserved is what was seen in several rigs.
func mergeObserved(rigs []*rig.Rig) scenario.Observed {
	out := scenario.Observed{Bootstraps: map[string]int{}}
	for _, r := range rigs {
		seen := r.Observed()
		out.Alarms, out.Violations = append(out.Alarms, seen.Alarms...), append(out.Violations, seen.Violations...)
		for name, bootstraps := range seen.Bootstraps {
			out.Bootstraps[name] += bootstraps
		}
	}
	return out
}

// wave creates clusters in a namespace and measures them.
func (m meter) wave(ctx context.Context, in *rig.Rig, there, clusters int) (w Wave, err error) {
	w = Wave{There: there, Clusters: clusters, Memory: map[string]int64{}}
	w.Cost, err = m.measure(func() error {
		began := time.Now()
		for at := range clusters {
			if err := createCluster(ctx, in, newCluster(clusterName(there+at), in.Namespace())); err != nil {
				return err
			}
		}
		err := in.Await(ctx, eachOnce(clusters, func(o rig.Objects, at int) error {
			return o.Converged(v1alpha1.KindTidbCluster, clusterName(there+at))
		}))
		w.Took = time.Since(began)
		return errors.Join(err, waitFor(ctx, afterwards))
	})
	if err != nil {
		return w, err
	}
	pids, err := m.plane.Processes()
	if err != nil {
		return w, err
	}
	pids[here] = os.Getpid()
	for name, pid := range pids {
		if w.Memory[name], _, err = readMemory(pid); err != nil {
			return w, fmt.Errorf("read the memory of %s: %w", name, err)
		}
	}
	return w, nil
}

// growthTable tells what clusters cost among others.
func growthTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Growth) > 0 }) {
		return
	}
	out.WriteString("\n### Growth\n\n" +
		"Clusters are created some at a time, the next ones when these are Ready, in a namespace of their own (up to 3dde3055 all in one, where Kubernetes' disruption controller looks through the PodDisruptionBudgets of all clusters each time that a pod changes). What they cost has in it what all that are there cost meanwhile. Memory is what the processes keep for themselves after each wave, without their code; the benchmark has all operators and the simulated databases in it.\n\n" +
		"| commit | clusters there | created | all Ready, s | writes | reads | reconciles | operators, ms | kube-apiserver, ms | memory of kube-apiserver, etcd, benchmark, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, run := range runs {
		for _, g := range run.Growth {
			for _, w := range g.Waves {
				fmt.Fprintf(out, "| %s | %d | %d | %s |\n", run.label(), w.There, w.Clusters, w.figures("%.1f | %.0f | %.0f | %.0f | %.0f | %.0f | %d, %d, %d"))
			}
			if g.Idle != nil {
				fmt.Fprintf(out, "| | | nothing to do for %s | | %d in all | %d in all | | %.0f in all | %.0f in all | |\n", g.Idle.Took.Round(time.Second), g.Idle.Writes, g.Idle.Reads, toMilliseconds(g.Idle.Operators()), toMilliseconds(g.Idle.ControlPlane[apiserver]))
			}
		}
	}
}
