package settings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

const file = "t.toml"

// table knows three items, of which members do not show the last, nor those that are 0; whatever
// else a file says needs a restart.
func table() settings.Table {
	return settings.Table{File: file, HidesZero: true, Items: []settings.Item{{Key: "a", Kind: settings.Number}, {Key: "b", Kind: settings.Number}, {Key: "c", Kind: settings.Number, Blind: true}}}
}

// keys are all items of a file, in the order in which members take them.
func keys() []string { return []string{"c", "a", "b", "fixed"} }

// bad is a value that no member takes, and with which none starts.
const bad = "-1"

// fraction is a value that a member takes for 2 while it runs, and with which none starts.
const fraction = "2.0"

// config is what a file says, by key; a missing key has its default.
type config map[string]string

func (c config) text() string {
	var lines []string
	for _, key := range keys() {
		if c[key] != "" {
			lines = append(lines, key+" = "+c[key])
		}
	}
	return strings.Join(lines, "\n")
}

func (c config) files() map[string]string { return map[string]string{file: c.text()} }

// process is what runs in a pod: it has read its file when it was started.
type process struct {
	pod    types.UID
	values map[string]string
}

// memberSimulation is a group in memory, with members that read their files when they start
// and take items while they run.
type memberSimulation struct {
	*grouptest.Simulation
	t         assert.TestingT
	own       *v1alpha1.TiDBGroup
	config    config
	policy    v1alpha1.ConfigUpdatePolicy
	members   *settings.Members
	processes map[string]*process // by host
	down      bool                // the status ports do not answer
	deaf      bool                // they take what they are given, and lose their answers
	halfway   bool                // they take items up to the first that they refuse
	ignores   string              // the key of an item that they do not know
	stopped   []string
	long      map[types.UID]bool // pods that were given up: their members had been down for long
	posts     int
	taken     map[string]bool // the items of the posts
	begun     []func(context.Context)
	beside    bool // what is begun ends when the test says so
}

func newMemberSimulation(t assert.TestingT, c config) *memberSimulation {
	own := &v1alpha1.TiDBGroup{}
	own.Name, own.Namespace, own.UID, own.Generation = "db", "shop", "uid", 1
	own.Spec.Replicas, own.Spec.PDGroup.Name = ptr.To(int32(2)), "pd"
	p := &memberSimulation{Simulation: grouptest.New(own), t: t, own: own, config: c, processes: map[string]*process{}, taken: map[string]bool{}, long: map[types.UID]bool{}}
	p.OnStop = func(pod grouptest.Pod, _ int) {
		if !p.long[pod.UID] {
			p.stopped = append(p.stopped, pod.Name)
		}
	}
	p.restartOperator()
	p.converge()
	p.stopped = nil
	return p
}

func (p *memberSimulation) restartOperator() {
	p.begun = nil
	p.members = settings.NewMembers(table(), p, p.begin, func() time.Time { return p.Now })
}

func (p *memberSimulation) begin(work func(context.Context)) {
	if p.beside {
		p.begun = append(p.begun, work)
		return
	}
	work(context.Background())
	p.wasWoken()
}

// wakesByEnding ends the piece of work at an index that was begun beside the reconciles, and
// reports whether the group was woken up by it.
func (p *memberSimulation) wakesByEnding(at int) bool {
	work := p.begun[at]
	p.begun = slices.Delete(p.begun, at, at+1)
	work(context.Background())
	return p.wasWoken()
}

// endAll ends all of them.
func (p *memberSimulation) endAll() {
	for len(p.begun) > 0 {
		p.wakesByEnding(0)
	}
}

// wasWoken reports whether the group was woken up.
func (p *memberSimulation) wasWoken() bool {
	select {
	case e := <-p.members.Answers():
		assert.Equal(p.t, p.own.Name, e.Object.GetName())
		return true
	default:
		return false
	}
}

// Show implements settings.API.
func (p *memberSimulation) Show(_ context.Context, host string) (map[string]any, error) {
	run := p.processes[host]
	if p.down || run == nil {
		return nil, errors.New("connection refused")
	}
	out := map[string]any{"a": 7.0, "b": 7.0} // the defaults
	for key, text := range run.values {
		var n float64
		if _, err := fmt.Sscan(text, &n); err != nil {
			return nil, err
		}
		out[key] = n
	}
	maps.DeleteFunc(out, func(key string, n any) bool { return key == "c" || key == p.ignores || n == 0.0 })
	return out, nil
}

// Take implements settings.API: all items or none, or halfway.
func (p *memberSimulation) Take(_ context.Context, host string, items map[string]string) (string, error) {
	run := p.processes[host]
	if p.down || run == nil {
		return "", errors.New("connection refused")
	}
	p.posts++
	next := maps.Clone(run.values)
	for _, key := range keys() {
		text, given := items[key]
		if !given {
			continue
		}
		p.taken[key] = true
		if text == bad {
			if p.halfway {
				run.values = next
			}
			return "500: " + key + " must not be " + bad, p.unheard()
		}
		if key != p.ignores {
			next[key] = text
		}
	}
	run.values = next
	return "", p.unheard()
}

func (p *memberSimulation) unheard() error {
	if p.deaf {
		return errors.New("the connection was closed")
	}
	return nil
}

// render is what an operator makes of the spec.
func (p *memberSimulation) render() (corev1.PodTemplateSpec, error) {
	name, err := rollout.ConfigMapName(p.own.Name, p.config.files())
	out := corev1.PodTemplateSpec{}
	out.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:" + p.own.Spec.Version}}
	out.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}}
	return out, err
}

// reconcile is one reconcile of the group's operator, from what it saw.
func (p *memberSimulation) reconcile(seen observation.Snapshot) planning.Plan {
	seen.Running, seen.RunningPending = p.members.Observe(p.own, seen.Instances)
	if seen.RunningPending {
		return planning.Plan{Outcome: step.Wait("status port", settings.FirstAnswerTimeout, v1alpha1.ReasonConfigPending, "pending")}
	}
	judge := settings.Judge{Table: table(), Group: p.own, Policy: p.policy, Running: seen.Running, Now: p.Now}
	template, err := p.render()
	assert.NoError(p.t, err)
	plan, err := group.MakePlan(p.own, seen, component.Rendering{
		Template: template, Files: p.config.files(), Inputs: []string{p.config.text(), p.own.Spec.Version},
		Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}, Component: calm{seen.Instances}, OnlineConfig: judge,
	})
	assert.NoError(p.t, err)
	plan.Outcome = step.Worst(plan.Outcome, plan.ConfigOutcome)
	p.ExecutePlan(seen, plan)
	p.giveUp(plan)
	plan.Outcome = step.Worst(p.members.Give(context.Background(), server{Simulation: p.Simulation}, events.NewFakeRecorder(100), p.own, judge.Orders(plan.ConfigUpdates)), plan.Outcome)
	p.Report(seen, plan)
	return plan
}

// giveUp notes the pods that a plan lets go because their members have been down
// for two minutes, as far as their Instances say: they are no longer waited for,
// and may come back before they are stopped.
func (p *memberSimulation) giveUp(plan planning.Plan) {
	for _, c := range plan.Instances {
		if c.Live == nil || c.Stops || c.Live.Spec.Revision == c.Desired.Spec.Revision {
			continue
		}
		ready := meta.FindStatusCondition(c.Live.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && p.Now.Sub(ready.LastTransitionTime.Time) >= 2*time.Minute {
			p.long[c.Live.Status.PodUID] = true
		}
	}
}

// configOf returns what the files of a pod say.
func (p *memberSimulation) configOf(pod grouptest.Pod) (text string, known bool) {
	for _, object := range p.Snapshot().Revisions {
		r, err := revision.Decode(object)
		assert.NoError(p.t, err)
		if hash, _ := r.Hash(); hash == pod.MadeFrom {
			return r.Files[file], true
		}
	}
	return "", false
}

// boot lets a pod's process start with its file, if it can.
func (p *memberSimulation) boot(name string) {
	at := slices.IndexFunc(p.Instances(), func(i *v1alpha1.Instance) bool { return i.Name == name })
	pod := p.Pod(name)
	if at < 0 || pod.UID == "" {
		return
	}
	host := fmt.Sprintf("10.0.0.%d", p.Instances()[at].Spec.Slot+1)
	if run := p.processes[host]; run != nil && run.pod == pod.UID && pod.Ready {
		return
	}
	text, known := p.configOf(pod)
	assert.True(p.t, known, "the files of pod %s are gone", name)
	run := &process{pod: pod.UID, values: map[string]string{}}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		run.values[key] = value
	}
	if run.values["a"] == bad || run.values["c"] == bad || run.values["a"] == fraction {
		delete(p.processes, host)
		return
	}
	p.processes[host] = run
	p.Start(name)
}

// advance lets instance operators and pods do what they can.
func (p *memberSimulation) advance() {
	for range 3 {
		for _, name := range p.Names() {
			p.Operate(name)
			p.boot(name)
			p.Operate(name)
		}
	}
}

func (p *memberSimulation) converge() {
	for range 60 {
		p.Now = p.Now.Add(15 * time.Second)
		plan := p.reconcile(p.Snapshot())
		p.endAll()
		p.advance()
		if plan.Outcome.Kind == step.KindDone && p.reconcile(p.Snapshot()).Outcome.Kind == step.KindDone {
			p.check()
			return
		}
	}
	assert.Fail(p.t, "it does not converge", "%v", p.reconcile(p.Snapshot()).Outcome)
}

// check is content when every member runs with what the spec says.
func (p *memberSimulation) check() {
	assert.Len(p.t, p.Names(), int(*p.own.Spec.Replicas))
	for _, i := range p.Instances() {
		host := fmt.Sprintf("10.0.0.%d", i.Spec.Slot+1)
		run := p.processes[host]
		if run == nil || run.pod != p.Pod(i.Name).UID {
			assert.Fail(p.t, "nothing runs in the pod of "+i.Name)
			continue
		}
		for _, key := range keys() {
			assert.Equal(p.t, p.config[key], run.values[key], "%s of %s", key, host)
		}
	}
}

// calm is a component whose members keep nothing that others need.
type calm struct{ seen []*v1alpha1.Instance }

func (calm) IsNotServing(i *v1alpha1.Instance) bool              { return !member.WasReady(i) }
func (calm) Rank(d component.Disruption) int                     { return int(d.Instance.Spec.Slot) }
func (calm) NeedsLease(component.Disruption) bool                { return false }
func (calm) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }
func (calm) LeaderCount(*v1alpha1.Instance) int                  { return 0 }
func (calm) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict  { return verdict.Allow() }
func (calm) MaxConcurrentRemovals() int                          { return 1 }
func (calm) RestartsWhenDeleted(*v1alpha1.Instance) bool         { return false }
func (calm) IsReplacedWhenDeleted(*v1alpha1.Instance) bool       { return false }
func (calm) ReasonDead(*v1alpha1.Instance) verdict.Reason        { return verdict.Reason{} }
func (calm) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Ready: true}
}

func (calm) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{Ready: true}
}

func (calm) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

func (c calm) Allows(d component.Disruption) verdict.Verdict {
	if slices.ContainsFunc(c.seen, func(i *v1alpha1.Instance) bool { return i.Name != d.Instance.Name && member.IsSettled(i) }) {
		return verdict.Allow()
	}
	return verdict.Refuse("no other one serves")
}

func (p *memberSimulation) edit(change func()) {
	change()
	p.own.Generation++
}

// with returns the configuration with another value.
func (p *memberSimulation) with(key, value string) config {
	out := maps.Clone(p.config)
	out[key] = value
	return out
}

func online(t assert.TestingT, c config) *memberSimulation {
	p := newMemberSimulation(t, c)
	p.edit(func() { p.policy = v1alpha1.ConfigOnline })
	p.converge()
	return p
}

func TestAnOnlineEditRestartsNoMemberAndReachesLaterPods(t *testing.T) {
	p := online(t, config{"a": "1", "fixed": "1"})
	p.edit(func() { p.config = config{"a": "2", "b": "3", "fixed": "1"} })
	p.converge()
	assert.Empty(t, p.stopped)
	assert.Equal(t, 2, p.posts)

	// A process that starts again in its pod has the old file, and gets the items.
	p.Break("db-0")
	p.Operate("db-0")
	p.converge()
	assert.Equal(t, 3, p.posts)

	// A pod that is recreated has the new file.
	p.Kill("db-1")
	p.Operate("db-1")
	p.converge()
	assert.Equal(t, 3, p.posts)
	for _, i := range p.Instances() {
		assert.Equal(t, i.Name == "db-0", i.Status.MadeFrom != "", i.Name)
		assert.Empty(t, i.Annotations[v1alpha1.AnnotationAppliedConfig])
	}

	// An operator that starts again asks, and gives nothing.
	p.restartOperator()
	assert.Equal(t, step.KindDone, p.reconcile(p.Snapshot()).Outcome.Kind)
	assert.Equal(t, 3, p.posts)
	assert.Empty(t, p.stopped)
}

func TestARefusedItemIsNamedReachesNoFileAndIsUndoneByReverting(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	before := p.Instances()
	p.edit(func() { p.config = config{"a": bad, "b": "5", "fixed": "1"} })
	for range 6 {
		p.reconcile(p.Snapshot())
		p.advance()
	}
	o := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Contains(t, o.Message, "a = -1")
	assert.Contains(t, o.Message, "a must not be -1")
	assert.Contains(t, o.Message, "kubectl -n shop edit tidbgroup db")
	for n, i := range p.Instances() {
		assert.Equal(t, before[n].Spec, i.Spec, "a pod that is made now has the files that are known to be good")
	}
	posts := p.posts
	p.reconcile(p.Snapshot())
	assert.Equal(t, posts, p.posts, "it is not asked all the time")

	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge()
	assert.Empty(t, p.stopped, "nothing was taken, so nothing has to be forgotten")
	assert.Empty(t, p.Instances()[0].Annotations[v1alpha1.AnnotationAppliedConfig])
}

func TestAnItemThatIsTakenAwayNeedsARestart(t *testing.T) {
	p := online(t, config{"fixed": "1"})
	p.edit(func() { p.config = config{"a": "2", "fixed": "1"} })
	p.converge()
	assert.Empty(t, p.stopped)
	p.edit(func() { p.config = config{"fixed": "1"} })
	p.converge()
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped)
}

func TestAnEditRevertedHalfwayLeavesNothingBehind(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "2", "b": "9"} })
	p.reconcile(p.Snapshot()) // marks
	p.reconcile(p.Snapshot()) // gives, and the operator dies before it says so
	assert.Equal(t, 2, p.posts)
	p.restartOperator()
	p.edit(func() { p.config = config{"a": "1"} })
	p.converge()
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped, "what b is by default only a restart brings back")
}

// TiProxy does not show what is 0, and the operator that has sent it may be another one.
func TestAZeroRevertedHalfwayLeavesNothingBehind(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "1", "b": "0"} })
	p.reconcile(p.Snapshot()) // marks
	p.reconcile(p.Snapshot()) // gives, and the operator dies before it says so
	assert.Equal(t, "0", p.processes["10.0.0.1"].values["b"])
	p.restartOperator()
	p.edit(func() { p.config = config{"a": "1"} })
	p.converge()
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped)
}

// An old TiProxy says yes to an item that it does not know.
func TestAnItemThatAMemberIgnoresIsNamed(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.ignores = "b"
	p.edit(func() { p.config = config{"a": "1", "b": "5"} })
	p.steps()
	o := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonConfigRefused, o.Reason)
	assert.Contains(t, o.Message, "b = 5")
}

func TestAMemberThatCannotBeAskedIsNamed(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.down = true
	p.edit(func() { p.config = config{"a": "2"} })
	for range 4 {
		p.reconcile(p.Snapshot())
	}
	o := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonRequestFailed, o.Reason)
	assert.Contains(t, o.Message, "connection refused")
	p.down = false
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestABadFileOfAMemberThatDoesNotStartIsFixedByARestart(t *testing.T) {
	p := newMemberSimulation(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": bad} }) // by a restart
	for range 5 {
		p.Now = p.Now.Add(time.Minute)
		p.reconcile(p.Snapshot())
		p.advance()
	}
	assert.Equal(t, []string{"db-0"}, p.stopped)
	p.edit(func() { p.policy, p.config = v1alpha1.ConfigOnline, config{"a": "2"} })
	p.converge()
	assert.Equal(t, []string{"db-0"}, p.stopped, "the other one has taken it while it runs")
}

// Whatever is edited, crashes and is seen late: in the end every member runs with
// what the spec says, and no member was restarted for what it takes while it runs.
func TestSettingsArriveAfterAnyOrderOfEditsAndCrashes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := online(t, config{"a": "1", "b": "1", "c": "1", "fixed": "1"})
		p.halfway, p.beside = rapid.Bool().Draw(t, "halfway"), rapid.Bool().Draw(t, "beside")
		mayStop := false
		old := p.Snapshot()
		value := rapid.SampledFrom([]string{"", "1", "2", fraction, bad})
		actions := []string{"a", "b", "fixed", "c", "step", "step", "step", "late", "end", "end", "unheard", "operate", "operate", "boot", "crash", "kill", "operator", "policy", "time"}
		if rapid.IntRange(0, 3).Draw(t, "more is edited") == 0 {
			actions = append(actions, "version", "restart", "delete", "replicas", "suspend", "pause", "canary")
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"db-0", "db-1"}).Draw(t, "member")
			switch rapid.SampledFrom(actions).Draw(t, "what") {
			case "a":
				next := p.with("a", value.Draw(t, "a"))
				mayStop = mayStop || table().AppliesOnline(p.config.files(), next.files()).Reason() != ""
				p.edit(func() { p.config = next })
			case "b":
				next := p.with("b", rapid.SampledFrom([]string{"", "0", "1", "2"}).Draw(t, "b"))
				mayStop = mayStop || table().AppliesOnline(p.config.files(), next.files()).Reason() != ""
				p.edit(func() { p.config = next })
			case "c":
				next := p.with("c", rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "c"))
				mayStop = mayStop || table().AppliesOnline(p.config.files(), next.files()).Reason() != ""
				p.edit(func() { p.config = next })
			case "fixed":
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					mayStop = true
					next := p.with("fixed", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "fixed"))
					p.edit(func() { p.config = next })
				}
			case "policy":
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					mayStop = true
					p.edit(func() {
						p.policy = rapid.SampledFrom([]v1alpha1.ConfigUpdatePolicy{v1alpha1.ConfigOnline, v1alpha1.RestartForConfig}).Draw(t, "policy")
					})
				}
			case "step":
				p.Now = p.Now.Add(time.Second)
				old = p.Snapshot()
				p.reconcile(old)
			case "late":
				p.reconcile(old)
			case "end":
				if len(p.begun) > 0 {
					p.wakesByEnding(rapid.IntRange(0, len(p.begun)-1).Draw(t, "which"))
				}
			case "unheard":
				p.deaf = true
				p.reconcile(p.Snapshot())
				p.endAll()
				p.deaf = false
			case "operate":
				p.Operate(name)
			case "boot":
				p.boot(name)
			case "crash":
				p.Now = p.Now.Add(2 * time.Second) // no process starts twice in a second
				p.Break(name)
			case "kill":
				p.Kill(name)
			case "operator":
				if rapid.Bool().Draw(t, "what it has sent arrives") {
					p.endAll()
				}
				p.restartOperator()
			case "version":
				mayStop = true
				p.edit(func() { p.own.Spec.Version = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version") })
			case "restart":
				mayStop = true
				p.Annotate(name, v1alpha1.AnnotationRestart, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "restart"))
			case "delete":
				mayStop = true
				p.Delete(name)
			case "replicas":
				mayStop = true
				p.edit(func() { p.own.Spec.Replicas = ptr.To(rapid.Int32Range(2, 3).Draw(t, "replicas")) })
			case "suspend":
				mayStop = true
				p.edit(func() { p.own.Spec.Suspended = rapid.Bool().Draw(t, "suspend") })
			case "pause":
				p.edit(func() { p.own.Spec.Paused = rapid.Bool().Draw(t, "pause") })
			case "canary":
				p.edit(func() {
					p.own.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: ptr.To(rapid.Int32Range(0, 2).Draw(t, "canary"))}
				})
			case "time":
				p.Now = p.Now.Add(time.Minute)
			}
			if !mayStop && len(p.stopped) > 0 {
				t.Fatalf("%v stopped for what can be had without", p.stopped)
			}
		}
		p.edit(func() { p.own.Spec.Suspended, p.own.Spec.Paused, p.own.Spec.Disruption = false, false, nil })
		if p.config["a"] == bad || p.config["a"] == fraction {
			p.edit(func() { p.config = p.with("a", "2") })
		}
		p.converge()
		if !mayStop && len(p.stopped) > 0 {
			t.Fatalf("%v stopped for what can be had without", p.stopped)
		}
		p.beside = false
		clear(p.taken)
		p.restartOperator()
		for range 3 {
			p.reconcile(p.Snapshot())
		}
		require.Equal(t, step.KindDone, p.reconcile(p.Snapshot()).Outcome.Kind)
		delete(p.taken, "c") // it does not show it
		require.Empty(t, p.taken, "an idle group gives nothing that its members show")
	})
}
