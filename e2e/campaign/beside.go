package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/faults"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

const (
	// answered is how long an edit of the target may wait for its operator's word. How
	// long it does wait DELAY measures.
	answered = 30 * time.Second
	// besideFor is how long the target is edited beside a hostile PD, once it was asked.
	besideFor = 2500 * time.Millisecond
	// mostStatus is how many bytes the status of a hostile object may have. That of 64
	// members of PD, each with a name as long as may be, is smaller.
	mostStatus = 48 << 10
	// roundLabel is what the target changes: it reaches its pods in place.
	roundLabel = "example.com/round"
)

// beside is the world of a scenario, which is the target, and beside it the
// namespace of an attacker. The same operators act in both.
type beside struct {
	target, hostile *rig.Rig
	front           *front
	trap            *trap
	written         *written
	tenant          client.Client
	want            *Reference
	allowed         map[string]bool // writes in the target's namespace and orders to its PD that the target itself causes
	round           int
	busy            bool // the neighbour has written the same objects again and again himself
	cancel          context.CancelFunc
}

// openBeside opens both namespaces, starts the operators and brings the hostile cluster
// up, which means no harm yet.
func (c *campaign) openBeside(ctx context.Context, story scenario.Scenario, want *Reference) (*beside, error) {
	ctx, cancel := context.WithCancel(ctx)
	b := &beside{want: want, allowed: map[string]bool{}, cancel: cancel}
	hostile, err := rig.Open(ctx, c.plane, rig.Options{
		Name: "hostile", ReasonDeadline: reasonDeadline, Relist: relist, Database: scenario.Database{Speed: 20, Regions: 6},
		Tolerate: []model.AlarmKind{model.LostPDMajority, model.LostRegionMajority, model.SecondClusterID, model.TwoClusters, model.LostData}, // its own PD lies
	})
	if err != nil {
		return b, err
	}
	b.hostile, b.front = hostile, newFront(ctx, hostile)
	if b.trap, err = openTrap(ctx); err != nil {
		return b, err
	}
	b.front.elsewhere = b.trap.address
	b.written = &written{}
	b.target, err = rig.Open(ctx, c.plane, rig.Options{
		ReasonDeadline: reasonDeadline, Relist: relist, Neighbours: []*rig.Rig{hostile}, Dial: b.front.dial,
		Reach: func(operator string, config *rest.Config) { config.Wrap(b.written.wrap(operator)) },
	}.For(story))
	if err != nil {
		return b, err
	}
	b.front.databases[b.target.Namespace()] = b.target.Databases
	b.front.targetPD = b.targetPD
	if b.tenant, err = c.tenantOf(ctx, hostile.Namespace()); err != nil {
		return b, err
	}
	if err := b.target.StartOperators(ctx, rig.Operators()...); err != nil {
		return b, err
	}
	return b, b.moveIn(ctx)
}

// targetPD is one of the target's databases.
func (b *beside) targetPD() (*rig.Database, error) {
	if all := b.target.Databases.List(); len(all) > 0 {
		return all[0], nil
	}
	return nil, errors.New("the target has no PD yet")
}

// close ends the world.
func (b *beside) close() error {
	if b == nil {
		return nil
	}
	defer b.cancel()
	var errs []error
	for _, r := range []*rig.Rig{b.target, b.hostile} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// settleTarget brings the target up and edits it once without an attacker,
// as it is edited later beside one.
func (b *beside) settleTarget(ctx context.Context, story scenario.Scenario) error {
	ctx, cancel := withRunningTimeout(ctx, 2*bound, fmt.Errorf("the target is not well within %s", 2*bound))
	defer cancel()
	if _, err := scenario.Run(ctx, b.target, story); err != nil {
		return err
	}
	for range 2 {
		if err := b.work(ctx); err != nil {
			return err
		}
	}
	if err := b.scale(ctx); err != nil {
		return err
	}
	if err := b.arrive(ctx); err != nil {
		return err
	}
	maps.Copy(b.allowed, b.touched())
	return nil
}

// written are the writes of the operators.
type written struct {
	mu    sync.Mutex
	count map[string]map[string]int // by namespace and write
}

// wrap notes what an operator writes, Events and dry runs apart.
func (t *written) wrap(operator string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return apirequest.RoundTripFunc(func(req *http.Request) (*http.Response, error) {
			if asks := apirequest.Parse(req); asks.Writes() && asks.Resource != "events" && !req.URL.Query().Has("dryRun") {
				w, err := faults.WriteOf(operator, req, asks)
				if err != nil {
					return nil, err
				}
				t.note(asks.Namespace, strings.TrimSuffix(w.String(), "/0"))
			}
			return next.RoundTrip(req)
		})
	}
}

func (t *written) note(namespace, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[string]map[string]int{}
	}
	if t.count[namespace] == nil {
		t.count[namespace] = map[string]int{}
	}
	t.count[namespace][what]++
}

// in returns the writes in a namespace, and the namespaces in which there were any.
func (t *written) in(namespace string) (map[string]int, []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.count[namespace]), sortedKeys(t.count)
}

// listServers is a question, too.
const listServers = http.MethodPost + "/v3/kv/range"

// touched is what operators have written in the target's namespace, and ordered its
// PD, each once.
func (b *beside) touched() map[string]bool {
	out := map[string]bool{}
	writes, _ := b.written.in(b.target.Namespace())
	for write := range writes {
		// The target's own edits make more revisions than are kept.
		if !strings.Contains(write, "/delete/controllerrevisions/") {
			out["write "+write] = true
		}
	}
	for endpoint := range b.front.endpoints(b.target.Namespace()) {
		if !strings.HasPrefix(endpoint, http.MethodGet) && endpoint != listServers {
			out["order to PD "+endpoint] = true
		}
	}
	return out
}

// mine are the objects that the target's user has made.
func (b *beside) mine() []objects.Key {
	var out []objects.Key
	for _, o := range b.want.Outcome {
		if slices.Contains(v1alpha1.Kinds(), o.Key.Kind) && len(o.Owners) == 0 && o.Key.Kind != v1alpha1.KindInstance {
			out = append(out, o.Key)
		}
	}
	return out
}

// patch changes an object of the target, as its user does.
func (b *beside) patch(ctx context.Context, key objects.Key, format string, args ...any) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(key.Kind))
	object.SetNamespace(b.target.Namespace())
	object.SetName(key.Name)
	if err := b.target.User().Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))); err != nil {
		return nil, fmt.Errorf("edit %s: %w", key, err)
	}
	return object, nil
}

// edited is how long an edit took: until a watch of the API server showed it, and until its
// operator had said something about it. What is slow about the first is no operator's doing.
type edited struct{ seen, answered time.Duration }

// edit changes a label of an object, and returns how long that took.
func (b *beside) edit(ctx context.Context, key objects.Key) (edited, error) {
	ctx, cancel := withRunningTimeout(ctx, answered, fmt.Errorf("an edit of the target's %s has no answer within %s", key, answered))
	defer cancel()
	b.round++
	begin := time.Now()
	object, err := b.patch(ctx, key, `{"spec":{"labels":{%q:"%d"}}}`, roundLabel, b.round)
	if err != nil {
		return edited{}, err
	}
	await := func(arrived func(now *unstructured.Unstructured) bool) error {
		return b.target.Await(ctx, func(o objects.Set) error {
			if now := o.Get(key.Kind, key.Name); now == nil || now.GetGeneration() < object.GetGeneration() || !arrived(now) {
				return fmt.Errorf("%s at generation %d", key, object.GetGeneration())
			}
			return nil
		})
	}
	var out edited
	if err := await(func(*unstructured.Unstructured) bool { return true }); err != nil {
		return out, err
	}
	out.seen = time.Since(begin)
	err = await(hasReported)
	out.answered = time.Since(begin)
	return out, err
}

// work edits each of the target's objects once.
func (b *beside) work(ctx context.Context) error {
	for _, key := range b.mine() {
		if _, err := b.edit(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// scale gives each TiDBGroup of the target a server more, and takes it away again. An edit
// reaches that server's pod before: one that came earlier may do so later, when machines are slow.
func (b *beside) scale(ctx context.Context) error {
	for _, key := range b.mine() {
		if key.Kind != v1alpha1.KindTiDBGroup {
			continue
		}
		var replicas int64
		b.target.Watcher.Now(func(o objects.Set) {
			if now := o.Get(key.Kind, key.Name); now != nil {
				replicas = replicasOf(now)
			}
		})
		if err := b.scaleTo(ctx, key, replicas+1); err != nil {
			return err
		}
		if _, err := b.edit(ctx, key); err != nil {
			return err
		}
		if err := b.reachPods(ctx, key); err != nil {
			return err
		}
		if err := b.scaleTo(ctx, key, replicas); err != nil {
			return err
		}
	}
	return nil
}

// reachPods waits until all pods of a group have what the last edit of it says.
func (b *beside) reachPods(ctx context.Context, key objects.Key) error {
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("an edit of the target's %s has not reached its pods within %s", key, bound))
	defer cancel()
	return b.target.Await(ctx, func(o objects.Set) error {
		for _, pod := range o.Names("Pod", key.Name+"-") {
			if has := o.Get("Pod", pod).GetLabels()[roundLabel]; has != strconv.Itoa(b.round) {
				return fmt.Errorf("pod %s has %q", pod, has)
			}
		}
		return nil
	})
}

func (b *beside) scaleTo(ctx context.Context, key objects.Key, replicas int64) error {
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("the target's %s has not %d replicas within %s", key, replicas, bound))
	defer cancel()
	object, err := b.patch(ctx, key, `{"spec":{"replicas":%d}}`, replicas)
	if err != nil {
		return err
	}
	return b.target.Await(ctx, func(o objects.Set) error {
		if now := o.Get(key.Kind, key.Name); now == nil || now.GetGeneration() < object.GetGeneration() {
			return fmt.Errorf("%s at generation %d", key, object.GetGeneration())
		}
		if have := int64(len(o.Names("Pod", key.Name+"-"))); have != replicas {
			return fmt.Errorf("it has %d pods", have)
		}
		return o.Converged(key.Kind, key.Name)
	})
}

// arrive takes the target's edits back and waits for the outcome of the undisturbed run.
func (b *beside) arrive(ctx context.Context) error {
	for _, key := range b.mine() {
		labels, err := encodeJSON(b.labels(key))
		if err == nil {
			_, err = b.patch(ctx, key, `{"spec":{"labels":%s}}`, labels)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("the target's outcome is not that of the undisturbed run within %s", bound))
	defer cancel()
	want := withoutRevisions(b.want.Outcome)
	return b.target.Await(ctx, func(o objects.Set) error {
		have, err := scenario.Outcome(o, b.target.Namespace())
		if err != nil {
			return err
		}
		if differences := scenario.Compare(withoutRevisions(have), want); len(differences) > 0 {
			return errors.New(strings.Join(differences, "; "))
		}
		return nil
	})
}

// labels are those that an object's spec had before the target changed them; with null
// for theirs, so that a patch takes it away.
func (b *beside) labels(key objects.Key) any {
	for _, o := range b.want.Outcome {
		spec, ok := o.Spec.(map[string]any)
		if o.Key != key || !ok {
			continue
		}
		if labels, found, _ := unstructured.NestedMap(spec, "spec", "labels"); found {
			labels[roundLabel] = nil
			return labels
		}
	}
	return nil
}

// withoutRevisions is an outcome without what is kept of the past.
func withoutRevisions(all []scenario.Object) []scenario.Object {
	return slices.DeleteFunc(slices.Clone(all), func(o scenario.Object) bool { return o.Key.Kind == "ControllerRevision" })
}

// snapshot is what may not change of a namespace beside an attacker.
type snapshot struct {
	uids   map[objects.Key][]types.UID
	others map[objects.Key]types.UID // in the hostile namespace
	panics float64
}

// look remembers what there is.
func (b *beside) look() snapshot {
	return snapshot{uids: b.target.Observed().UIDs, others: b.others(), panics: countPanics()}
}

// others are the objects of other owners in the hostile namespace, and the members and
// claims of the bystanders there, those apart that are about to go.
func (b *beside) others() map[objects.Key]types.UID {
	out := map[objects.Key]types.UID{}
	b.hostile.Watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			object := o.Get(key.Kind, key.Name)
			group := object.GetLabels()[v1alpha1.LabelGroup]
			theirs := key.Name == strangers || (group == bystander || group == "y") && slices.Contains([]string{"Pod", "PersistentVolumeClaim", v1alpha1.KindInstance}, key.Kind)
			if theirs && object.GetDeletionTimestamp() == nil {
				out[key] = object.GetUID()
			}
		}
	})
	return out
}

// harm are the alarms and violations of the target, and of the hostile cluster those
// violations that are not its own doing.
func (b *beside) harm() []Finding {
	out := (&stage{Rig: b.target}).harm()
	for _, violation := range b.hostile.Watcher.Violations() {
		// Its processes end when its PD lies to them, and its members have the IDs that its PD gives them.
		// Who writes in a loop may be the neighbour; what operators write of strangers is looked at apart.
		loop := b.busy && strings.Contains(violation, "written in a loop")
		if !loop && !strings.HasPrefix(violation, "pod actor:") && !strings.Contains(violation, ".id was ") {
			out = append(out, Finding{Promise: findBrokenPromise(violation), What: "in the hostile namespace: " + violation})
		}
	}
	return out
}

// judge finds what an attacker has done to others since a moment, when these
// have taken their own edits back.
func (b *beside) judge(ctx context.Context, before snapshot, worked error) []Finding {
	arrived := b.arrive(ctx)
	out := b.outcome(before, worked)
	if arrived != nil && worked == nil {
		out = append(out, Finding{Promise: "P12", What: arrived.Error()})
	}
	after := b.target.Observed().UIDs
	for _, o := range b.want.Outcome { // the server that came and went is not in it
		if !slices.Equal(before.uids[o.Key], after[o.Key]) {
			out = append(out, Finding{Promise: "P12", What: "the target's " + o.Key.String() + " was replaced"})
		}
	}
	return out
}

// outcome finds what was done to others on the way.
func (b *beside) outcome(before snapshot, worked error) []Finding {
	var out []Finding
	note := func(promise, format string, args ...any) {
		out = append(out, Finding{Promise: promise, What: fmt.Sprintf(format, args...)})
	}
	out = append(out, b.harm()...)
	if worked != nil && len(out) == 0 {
		note("P10", "%v", worked)
	}
	for _, what := range sortedKeys(b.touched()) {
		if !b.allowed[what] {
			note("P12", "%s: never undisturbed", what)
		}
	}
	_, namespaces := b.written.in("")
	for _, namespace := range namespaces {
		if namespace != b.target.Namespace() && namespace != b.hostile.Namespace() {
			writes, _ := b.written.in(namespace)
			note("P12", "operators wrote in namespace %q: %s", namespace, strings.Join(sortedKeys(writes), ", "))
		}
	}
	writes, _ := b.written.in(b.hostile.Namespace())
	for _, write := range sortedKeys(writes) {
		if strings.HasSuffix(write, "/"+strangers) {
			note("P12", "%s: an object of another owner in the hostile namespace", write)
		}
	}
	others := b.others()
	for key, uid := range before.others {
		if others[key] != uid {
			note("P12", "%s of another owner in the hostile namespace is gone or about to go", key)
		}
	}
	for _, visit := range b.trap.seen() {
		note("P12", "%s where no operator may connect", visit)
	}
	if now := countPanics(); now > before.panics {
		note("P10", "operators panicked %g times", now-before.panics)
	}
	return append(out, b.bounded()...)
}

// heard finds groups of the hostile namespace about whose present generation their
// operators say nothing.
func (b *beside) heard(ctx context.Context) []Finding {
	ctx, cancel := withRunningTimeout(ctx, answered, fmt.Errorf("nothing is said of it within %s", answered))
	defer cancel()
	err := b.hostile.Watcher.Await(ctx, func(o objects.Set) error {
		for _, key := range o.Keys() {
			object := o.Get(key.Kind, key.Name)
			if key.Kind != v1alpha1.KindInstance && slices.Contains(v1alpha1.Kinds(), key.Kind) && !hasReported(object) {
				return fmt.Errorf("hostile %s at generation %d", key, object.GetGeneration())
			}
		}
		return nil
	})
	if err != nil {
		return []Finding{{Promise: "P11", What: err.Error()}}
	}
	return nil
}

// hasReported says whether an object's operator has said something about its generation.
func hasReported(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects.Conditions(object), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.ObservedGeneration >= object.GetGeneration()
	})
}

// bounded finds a status in the hostile namespace that is too long, that cannot be shown
// to a user, or that says nothing.
func (b *beside) bounded() []Finding {
	var out []Finding
	b.hostile.Watcher.Now(func(o objects.Set) {
		for _, key := range o.Keys() {
			if slices.Contains(v1alpha1.Kinds(), key.Kind) {
				out = append(out, checkStatus(key, o.Get(key.Kind, key.Name))...)
			}
		}
	})
	return out
}

// checkStatus finds what is wrong with the status of an object whose owner means harm.
func checkStatus(key objects.Key, object *unstructured.Unstructured) []Finding {
	var out []Finding
	note := func(promise, format string, args ...any) {
		out = append(out, Finding{Promise: promise, What: "hostile " + key.String() + ": " + fmt.Sprintf(format, args...)})
	}
	text, err := json.Marshal(object.Object["status"])
	if err != nil || len(text) > mostStatus {
		note("P10", "its status has %d bytes: %v", len(text), err)
	}
	for _, c := range objects.Conditions(object) {
		if at := strings.IndexFunc(c.Message, func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }); at >= 0 {
			note("P12", "condition %s has what no terminal should be sent: %q", c.Type, c.Message)
		}
		if c.Status != metav1.ConditionTrue && c.Message == "" {
			note("P11", "condition %s is %s without a word", c.Type, c.Status)
		}
	}
	return out
}

// countPanics is how often a reconcile of this process has panicked so far.
func countPanics() float64 {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0 // a metric that cannot be gathered counts for nothing
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_panics_total" {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// tenantOf is a user who has the rights of Kubernetes' role edit in a namespace, with
// what deploy adds to it, and none elsewhere.
func (c *campaign) tenantOf(ctx context.Context, namespace string) (client.Client, error) {
	user := "tenant-of-" + namespace
	admin, err := client.New(c.plane.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("make a tenant: %w", err)
	}
	if err := grantEdit(ctx, admin, c.options.CRDs, namespace, user); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	config.QPS = -1
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("make a tenant: %w", err)
	}
	out, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a tenant: %w", err)
	}
	return out, awaitRights(ctx, out, namespace)
}
