package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const (
	// edited is the cluster that is edited.
	edited = "edited"
	// editRestarts is how often the operators are restarted, each time with one edit.
	editRestarts = 5
)

// Edits tells how soon operators act on what a user changes under load.
type Edits struct {
	// Clusters beside the one that is edited.
	Clusters int `json:"clusters"`
	// Starting are edits while those start, Restarted ones right after a restart of all operators.
	Starting  Reactions `json:"starting"`
	Restarted Reactions `json:"restarted"`
}

// Reactions are the times from a user's edit of a TidbCluster until the API server has
// answered an operator's first write that has the edit in it.
type Reactions struct {
	// Cluster is the time to the TidbCluster's operator, Group to the TiDBGroup's, and Pod to
	// the last one, the Instances'.
	Cluster []time.Duration `json:"cluster"`
	Group   []time.Duration `json:"group"`
	Pod     []time.Duration `json:"pod"`
	// Acted is the operator's own part of Cluster: from the API server's answer to the edit
	// until the operator sends its write.
	Acted []time.Duration `json:"acted,omitempty"`
}

// computeQuantile is the smallest time that a share of all do not exceed.
func computeQuantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// formatQuantiles tells times as cells of a table, in milliseconds.
func formatQuantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f / %.0f / %.0f", toMilliseconds(computeQuantile(all, 0.5)), toMilliseconds(computeQuantile(all, 0.99)), toMilliseconds(computeQuantile(all, 1)))
}

// loads are the edits by what went on meanwhile.
func (e Edits) loads() []underLoad {
	return slices.DeleteFunc([]underLoad{{"they start", e.Starting}, {"the operators were restarted", e.Restarted}}, func(l underLoad) bool { return len(l.found.Cluster) == 0 })
}

// underLoad is what goes on while a user edits.
type underLoad struct {
	name  string
	found Reactions
}

// String tells it on one line for each load.
func (e Edits) String() string {
	var out []string
	for _, l := range e.loads() {
		out = append(out, fmt.Sprintf("%d edits beside %d clusters while %s, ms p50 / p99 / most: acted on %s, in the group %s, in its Instances %s, in a pod %s",
			len(l.found.Cluster), e.Clusters, l.name, formatQuantiles(l.found.Acted), formatQuantiles(l.found.Cluster), formatQuantiles(l.found.Group), formatQuantiles(l.found.Pod)))
	}
	return strings.Join(out, "\n")
}

// reaction is a write of an operator that has an edit in it.
type reaction struct {
	operator string
	sent, at time.Time
}

// reactions tells of the writes that have an edit in them.
type reactions struct {
	mu     sync.Mutex
	value  []byte
	found  map[string]bool
	told   chan reaction
	wanted map[string]string // by operator, the resource that is waited for
}

func newReactions() *reactions {
	return &reactions{
		told:   make(chan reaction, 3),
		wanted: map[string]string{"tidbcluster": "tidbgroups", "tidbgroup": "instances", "instance": "pods"},
	}
}

// await begins to look for a value.
func (r *reactions) await(value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.found = []byte(value), map[string]bool{}
}

// see looks at a write that was answered.
func (r *reactions) see(operator string, of apirequest.Request, body []byte, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil || of.Subresource != "" || r.wanted[operator] != of.Resource || !bytes.Contains(body, r.value) {
		return
	}
	if !r.found[operator] {
		r.found[operator] = true
		r.told <- reaction{operator, sent, time.Now()}
	}
}

// reach has an operator's writes looked at.
func (r *reactions) reach(operator string, config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apirequest.RoundTripFunc(func(req *http.Request) (*http.Response, error) {
			of := apirequest.Parse(req)
			if !of.Writes() || req.GetBody == nil {
				return next.RoundTrip(req)
			}
			copied, err := req.GetBody()
			if err != nil {
				return nil, fmt.Errorf("read the body of %s %s: %w", req.Method, req.URL.Path, err)
			}
			body, err := io.ReadAll(copied)
			if err != nil {
				return nil, fmt.Errorf("read the body of %s %s: %w", req.Method, req.URL.Path, err)
			}
			sent := time.Now()
			response, err := next.RoundTrip(req)
			if err == nil && response.StatusCode < http.StatusMultipleChoices {
				r.see(operator, of, body, sent)
			}
			return response, err
		})
	})
}

// MeasureEdits has a user edit one cluster again and again, while others start, and then
// after each of some restarts.
func MeasureEdits(ctx context.Context, plane *controlplane.ControlPlane, c Case) (out Edits, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline()+(editRestarts+1)*clusterTime)
	defer cancel()
	seen := newReactions()
	options := c.options("edits")
	options.Reach = seen.reach
	r, err := openForeign(ctx, plane, options, c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.StartOperators(ctx, rig.Operators()...); err != nil {
		return out, err
	}
	out.Clusters = c.Clusters
	e := editor{rig: r, seen: seen}
	if err := e.begin(ctx); err != nil {
		return out, err
	}
	if out.Starting, err = e.during(ctx, c.Edits, func() error { return bringUp(ctx, r, c) }); err != nil {
		return out, err
	}
	for range editRestarts {
		if err := restartOperators(ctx, r); err != nil {
			return out, err
		}
		if err := e.edit(ctx, &out.Restarted); err != nil {
			return out, err
		}
	}
	return out, nil
}

// editor edits a cluster.
type editor struct {
	rig  *rig.Rig
	seen *reactions
	made int
}

// begin makes the cluster that is edited.
func (e *editor) begin(ctx context.Context) error {
	if err := createCluster(ctx, e.rig, newCluster(edited, e.rig.Namespace())); err != nil {
		return err
	}
	if err := e.rig.Await(ctx, func(o rig.Objects) error { return o.Converged(v1alpha1.KindTidbCluster, edited) }); err != nil {
		return fmt.Errorf("wait for the cluster that is edited: %w", err)
	}
	return nil
}

// during edits until something has been done, or often enough.
func (e *editor) during(ctx context.Context, most int, do func() error) (out Reactions, err error) {
	came := make(chan error, 1)
	go func() { came <- do() }()
	for len(out.Cluster) < most {
		select {
		case err := <-came:
			return out, err
		default:
		}
		if err := e.edit(ctx, &out); err != nil {
			return out, err
		}
	}
	return out, <-came
}

// edit gives the pods of TiDB a label of another value, which needs no restart, and waits
// until all have it.
func (e *editor) edit(ctx context.Context, into *Reactions) error {
	e.made++
	value := fmt.Sprintf("edit-%d-of-a-person", e.made)
	e.seen.await(value)
	c := newCluster(edited, e.rig.Namespace())
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":"/spec/tidb/0/labels","value":{"edit":%q}}]`, value))
	began := time.Now()
	if err := e.rig.User().Patch(ctx, c, patch, client.FieldOwner("user")); err != nil {
		return fmt.Errorf("edit TidbCluster %s: %w", edited, err)
	}
	answered := time.Now()
	times := map[string]*[]time.Duration{"tidbcluster": &into.Cluster, "tidbgroup": &into.Group, "instance": &into.Pod}
	for range times {
		select {
		case found := <-e.seen.told:
			all := times[found.operator]
			*all = append(*all, found.at.Sub(began))
			if found.operator == "tidbcluster" {
				into.Acted = append(into.Acted, max(found.sent.Sub(answered), 0))
			}
		case <-ctx.Done():
			return fmt.Errorf("wait until operators act on edit %d: %w", e.made, context.Cause(ctx))
		}
	}
	return e.settled(ctx)
}

// settled waits until nothing is left of an edit that the next one could wait for.
func (e *editor) settled(ctx context.Context) error {
	err := e.rig.Await(ctx, func(o rig.Objects) error { return o.Converged(v1alpha1.KindTiDBGroup, edited+"-tidb") })
	if err != nil {
		return fmt.Errorf("wait for the TiDBGroup that was edited: %w", err)
	}
	return nil
}

// editTable tells how soon edits are acted on.
func editTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Edits) > 0 }) {
		return
	}
	out.WriteString("\n### A user's edit under load\n\n" +
		"From an edit of a TidbCluster, which changes a label of the pods of TiDB, until the API server has answered the first write that has it: p50 / p99 / most, ms. *Acted on* is the operator's own part of it: from the answer to the edit until the operator sends its write. The next edit comes when the TiDBGroup is at rest again. Of fewer than 100 edits, p99 is the most.\n\n" +
		"| commit | what it is | other clusters | while | edits | acted on | in the group | in its Instances | in a pod |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, run := range runs {
		for _, e := range run.Edits {
			for _, l := range e.loads() {
				fmt.Fprintf(out, "| %s | %s | %d | %s | %d | %s | %s | %s | %s |\n", run.label(), run.What, e.Clusters, l.name, len(l.found.Cluster), formatQuantiles(l.found.Acted), formatQuantiles(l.found.Cluster), formatQuantiles(l.found.Group), formatQuantiles(l.found.Pod))
			}
		}
	}
}
