package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const (
	// watchBad is how long bad clusters are watched unless the case says it.
	watchBad = time.Minute
	// settleBad is how long they have before that to come to the end of all deadlines: words
	// change and Events are recorded until then.
	settleBad = time.Minute
	// loop is how many writes a minute for one bad cluster are a loop: nothing happens to
	// it that a status could tell.
	loop = 6
)

// Bad is what clusters cost of which one in so many cannot become Ready.
type Bad struct {
	// Good and Bad are how many clusters can become Ready, and how many cannot.
	Good int `json:"good"`
	Bad  int `json:"bad"`
	// Took is the time until all good ones were Ready.
	Took time.Duration `json:"took"`
	// GoodWrites and BadWrites are the writes for both until the good ones were Ready, the
	// bad ones said why they cannot be, and a minute later.
	GoodWrites int `json:"goodWrites"`
	BadWrites  int `json:"badWrites"`
	// Watched is for how long they were watched then, GoodLater and BadLater what was written.
	Watched   time.Duration `json:"watched"`
	GoodLater int           `json:"goodLater"`
	BadLater  int           `json:"badLater"`
	// Later are the requests of that time, by kind, for both.
	Later map[rig.Request]int `json:"-"`
}

// perMinute is how many writes a minute there were for one bad cluster in the end.
func (b Bad) perMinute() float64 {
	return float64(b.BadLater) / float64(b.Bad) / b.Watched.Minutes()
}

// String tells it on two lines.
func (b Bad) String() string {
	return fmt.Sprintf("%d clusters that can be Ready: Ready in %.1f s, %.1f writes per cluster, then %d writes within %s\n"+
		"%d clusters that cannot: %.1f writes per cluster until a minute after they said why, then %.1f per cluster and minute",
		b.Good, b.Took.Seconds(), float64(b.GoodWrites)/float64(b.Good), b.GoodLater, b.Watched.Round(time.Second),
		b.Bad, float64(b.BadWrites)/float64(b.Bad), b.perMinute())
}

// Check is an error if something is written in a loop.
func (b Bad) Check() error {
	if b.perMinute() <= loop {
		return nil
	}
	var most []string
	for _, request := range slices.SortedFunc(maps.Keys(b.Later), func(x, y rig.Request) int {
		return cmp.Or(b.Later[y]-b.Later[x], cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	}) {
		if request.Writes() {
			most = append(most, fmt.Sprintf("%d × %s %s %s", b.Later[request], request.Operator, request.Verb, request.Resource))
		}
	}
	return fmt.Errorf("%.1f writes a minute for each cluster that cannot become Ready, more than %d are a loop: %s", b.perMinute(), loop, strings.Join(most, ", "))
}

// SplitClusters says how many of so many clusters are good and bad, if one in every so many is bad.
func SplitClusters(clusters, every int) (good, bad int, err error) {
	bad = clusters / max(every, 1)
	if every < 2 || bad == 0 {
		return 0, 0, fmt.Errorf("-bad %d with -clusters %d: one cluster in so many is bad, at least one of each has to be there: try -clusters 10 -bad 10", every, clusters)
	}
	return clusters - bad, bad, nil
}

// MeasureBad runs a case in which one cluster in every so many cannot become Ready. Those
// have a namespace of their own, by which their writes are told apart.
func MeasureBad(ctx context.Context, plane *controlplane.ControlPlane, c Case, every int) (Bad, error) {
	return measureBad(ctx, plane, c, every, settleBad)
}

func measureBad(ctx context.Context, plane *controlplane.ControlPlane, c Case, every int, settle time.Duration) (out Bad, err error) {
	if out.Good, out.Bad, err = SplitClusters(c.Clusters, every); err != nil {
		return out, err
	}
	if c.Idle == 0 {
		c.Idle = watchBad
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline()+settle)
	defer cancel()
	options := c.options("bad")
	bad, err := rig.Open(ctx, plane, options)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, bad.Close()) }()
	options.Name, options.Neighbours = "good", []*rig.Rig{bad}
	good, err := openForeign(ctx, plane, options, c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, good.Close()) }()
	if err := good.StartOperators(ctx, rig.Operators()...); err != nil {
		return out, err
	}
	if err := out.measure(ctx, beside{good, bad}, c, settle); err != nil {
		return out, err
	}
	return out, errors.Join(observedError(good.Observed()), observedError(bad.Observed()))
}

// beside are the rigs of clusters that can and that cannot become Ready.
type beside struct{ good, bad *rig.Rig }

// measure creates the clusters, bad ones first, and counts.
func (b *Bad) measure(ctx context.Context, r beside, c Case, settle time.Duration) error {
	good, bad := r.good, r.bad
	for at := range b.Bad {
		if err := createBad(ctx, bad, at); err != nil {
			return err
		}
	}
	c.Clusters = b.Good
	began := time.Now()
	if err := bringUp(ctx, good, c); err != nil {
		return err
	}
	b.Took = time.Since(began)
	if err := bad.Await(ctx, b.said); err != nil {
		return fmt.Errorf("wait until bad clusters say why they cannot be Ready: %w", err)
	}
	if err := waitFor(ctx, settle); err != nil {
		return err
	}
	written := func() (int, int) {
		return good.Requests.WritesIn(good.Namespace()), good.Requests.WritesIn(bad.Namespace())
	}
	b.GoodWrites, b.BadWrites = written()
	before := good.Requests.Counts()
	began = time.Now()
	if err := waitFor(ctx, c.Idle); err != nil {
		return err
	}
	b.Watched = time.Since(began)
	goodLater, badLater := written()
	b.Later = good.Requests.Since(before)
	b.GoodLater, b.BadLater = goodLater-b.GoodWrites, badLater-b.BadWrites
	return nil
}

// said is content when each bad cluster says what is wrong with it.
func (b *Bad) said(o rig.Objects) error {
	for at := range b.Bad {
		kind, name, reason := v1alpha1.KindPDGroup, badName(at)+"-pd", v1alpha1.ReasonImagePullFailed
		if crashesTiKV(at) {
			kind, name, reason = v1alpha1.KindTiKVGroup, badName(at)+"-tikv", v1alpha1.ReasonContainerCrashing
		}
		if err := o.Says(kind, name, v1alpha1.ConditionUpToDate, reason); err != nil {
			return err
		}
	}
	return nil
}

func badName(at int) string { return fmt.Sprintf("bad%d", at) }

// crashesTiKV says whether the TiKV of a bad cluster ends whenever it is started, as every other
// one's does; the image of the others' PD cannot be pulled.
func crashesTiKV(at int) bool { return at%2 == 0 }

func createBad(ctx context.Context, r *rig.Rig, at int) error {
	c := newCluster(badName(at), r.Namespace())
	if crashesTiKV(at) {
		c.Spec.TiKV[0].Config = "[backup]\nnum-threads = \"many\"\n"
	} else {
		c.Spec.PD.Image = "pingcap/pd:bad"
	}
	if err := r.User().Create(ctx, c, client.FieldOwner("user")); err != nil {
		return fmt.Errorf("create TidbCluster %s: %w", c.Name, err)
	}
	return nil
}

// badTable tells what bad clusters cost.
func badTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Bad) > 0 }) {
		return
	}
	out.WriteString("\n### Beside clusters that cannot become Ready\n\n" +
		"The TiKV of every other one refuses its configuration and crashes; the image of PD of the others cannot be pulled.\n\n" +
		"| commit | good | bad | all good Ready, s | writes per good one | writes per bad one until a minute after it says why | then watched | writes per bad one and minute |\n|---|---|---|---|---|---|---|---|\n")
	for _, run := range runs {
		for _, b := range run.Bad {
			fmt.Fprintf(out, "| %s | %d | %d | %.1f | %.0f | %.0f | %s | %.1f |\n", run.label(), b.Good, b.Bad, b.Took.Seconds(),
				float64(b.GoodWrites)/float64(b.Good), float64(b.BadWrites)/float64(b.Bad), b.Watched.Round(time.Second), b.perMinute())
		}
	}
}
