package controller

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// seedsEnv is how many seeds are simulated, from 0 on, beside the known ones:
	//
	//	SEEDS=5000 go test -count=1 -run TestP1P5P6 ./tikvgroup/controller
	seedsEnv = "SEEDS"
	// defaultSeeds is how many they are if it is not set: the test is to take few seconds.
	defaultSeeds = 24
	// startRounds are those in which a new group starts without being disturbed.
	startRounds = 15
	// disturbedRounds are those in which users edit, nodes fail and the operator crashes.
	disturbedRounds = 60
	// settleRounds is how long the group may take to converge after that.
	settleRounds = 400
	// idleRounds is for how long nothing may be written before the group counts as converged.
	idleRounds = 4
)

// knownSeeds are always simulated: each finds a bug that the planner had once, named by the commit
// that fixed it, if that is undone. A change of the simulation makes other seeds find them.
func knownSeeds() []uint64 {
	return []uint64{
		14,   // 09d0f6c6
		88,   // 0402683f
		305,  // 24a8a114
		3425, // bf9f245b
	}
}

// simulatedSeeds are the known seeds and the range that is asked for.
func simulatedSeeds(t *testing.T) []uint64 {
	t.Helper()
	seeds, count := knownSeeds(), uint64(defaultSeeds)
	if text := os.Getenv(seedsEnv); text != "" {
		var err error
		count, err = strconv.ParseUint(text, 10, 32)
		require.NoError(t, err, seedsEnv)
	}
	for seed := range count {
		if !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// P1, P5, P6: whatever users edit, whatever fails and wherever the operator crashes, no plan stops a
// store whose regions would lose their majority. Once that ends, the group converges without help.
func TestP1P5P6RandomEditsAndFailuresAreSurvived(t *testing.T) {
	for _, seed := range simulatedSeeds(t) {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			m := newSimulation(t, seed)
			for range startRounds {
				m.playRound(neverCrash)
			}
			for range disturbedRounds {
				m.disturb()
			}
			m.undoMistakes()
			m.requireConvergence()
		})
	}
}

// neverCrash lets the operator make all its writes.
const neverCrash = -1

var (
	// errCrashed ends a reconcile before a write, and nothing is reported.
	errCrashed = errors.New("the operator crashed")
	// errRefused ends a reconcile whose plan PD does not allow any more.
	errRefused = errors.New("refused by PD")
)

// simulation is one TiKVGroup in memory, with its PD, pods, nodes and users. All that happens is
// drawn from its seed.
type simulation struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	group  *v1alpha1.TiKVGroup
	// actual is what there is, of which the operator may see an older PD.
	actual observation.Snapshot
	// lastView is PD as the operator last saw it.
	lastView pd.View
	now      time.Time
	// serial makes names unique.
	serial int
	// claims are the stores whose data the claims of Instances hold.
	claims map[string]string
	// unreachable is until when the node of an Instance does not answer.
	unreachable map[string]time.Time
	// pdDown says that PD does not answer.
	pdDown bool
	// events are those that may happen, chances how often things happen.
	events  []func()
	chances chances
	// calm says that nothing is drawn any more but how fast pods stop and stores leave.
	calm bool
	// plan is the last one.
	plan groupPlan
	// writes are how many the operator has made in this reconcile, crashAfter those that are left.
	writes, crashAfter int
	// refused says that PD has refused a call in this reconcile.
	refused bool
	// steps are all that has happened, for the message of a failure.
	steps []string
}

// chances are in how many times something happens once.
type chances struct {
	// event before a round, crash of the operator in a round, old view of PD, and an Offline store
	// that leaves in a round.
	event, crash, oldView, leave int
}

// drawChances draws what happens with this seed. Few kinds of events, which repeat, find more than
// all kinds do: orders of three or four that belong together are rare otherwise.
func (m *simulation) drawChances() {
	m.chances = chances{event: 2 + m.random.IntN(4), crash: 2 + m.random.IntN(6), oldView: 2 + m.random.IntN(4), leave: 1 + m.random.IntN(4)}
	m.events = m.listEvents()
	m.random.Shuffle(len(m.events), func(a, b int) { m.events[a], m.events[b] = m.events[b], m.events[a] })
	m.events = m.events[:4+m.random.IntN(len(m.events)-3)]
}

// variants are the groups that are simulated, by the seed's remainder.
func variants() []func(*simulation) {
	failover := func(policy v1alpha1.FailoverPolicy) func(*simulation) {
		return func(m *simulation) {
			m.group.Spec.Failover = &v1alpha1.Failover{Policy: policy, After: &metav1.Duration{Duration: time.Minute}}
		}
	}
	return []func(*simulation){
		func(*simulation) {},
		func(m *simulation) {
			m.group.Spec.RestartTogether, m.group.Spec.Replicas = "zone", ptr.To[int32](6)
			m.actual.PD.IsolationLevel, m.actual.PD.LocationLabels = "zone", []string{"zone"}
		},
		failover(v1alpha1.AddOnFailover),
		failover(v1alpha1.ReplaceOnFailover),
	}
}

// newSimulation returns a group that has no Instances.
func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	m := &simulation{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), group: sample(), now: now(),
		actual: world(t, sample(), 0), claims: map[string]string{}, unreachable: map[string]time.Time{},
	}
	m.group.Spec.Version, m.group.Spec.FlushLogBackups = "v1", ptr.To(false)
	m.actual.PD.LocationLabels, m.actual.Records = nil, revision.NewMemory()
	variants()[seed%uint64(len(variants()))](m)
	m.drawChances()
	return m
}

// addStep notes what has happened.
func (m *simulation) addStep(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

// hasLuck reports whether something that happens once in so many times happens now.
func (m *simulation) hasLuck(times int) bool { return m.random.IntN(times) == 0 }

// disturb plays one round, perhaps after an event, and perhaps with a crash.
func (m *simulation) disturb() {
	if m.hasLuck(m.chances.event) {
		m.playEvent()
	}
	crashAfter := neverCrash
	if m.hasLuck(m.chances.crash) {
		crashAfter = m.random.IntN(4)
	}
	m.playRound(crashAfter)
}

// playRound lets the operator reconcile once, and then the instance operator, the pods and PD do
// what they can. It returns how many writes the operator has made.
func (m *simulation) playRound(crashAfter int) int {
	m.now = m.now.Add(5 * time.Second)
	m.reconcile(crashAfter)
	for n := len(m.actual.Instances) - 1; n >= 0; n-- {
		if m.calm || !m.hasLuck(3) {
			m.operateInstance(n)
		}
	}
	for _, i := range m.actual.Instances {
		if i.Status.ObservedGeneration == i.Generation {
			m.editInstance(i.Name, m.reportReady)
		}
	}
	m.advancePD()
	return m.writes
}

// editInstance changes a copy of an Instance: plans keep those that they have seen.
func (m *simulation) editInstance(name string, change func(*v1alpha1.Instance)) {
	at := slices.IndexFunc(m.actual.Instances, func(i *v1alpha1.Instance) bool { return i.Name == name })
	i := m.actual.Instances[at].DeepCopy()
	change(i)
	m.actual.Instances = slices.Clone(m.actual.Instances)
	m.actual.Instances[at] = i
}

// removeInstance takes an Instance away.
func (m *simulation) removeInstance(name string) {
	m.actual.Instances = slices.DeleteFunc(slices.Clone(m.actual.Instances), func(i *v1alpha1.Instance) bool { return i.Name == name })
}

// observe returns what the operator sees, and PD as it is now: what it sees of PD may be old.
func (m *simulation) observe() (seen observation.Snapshot, current pd.View) {
	seen, current = m.actual, m.viewPD()
	seen.PD = current
	if !m.calm && m.hasLuck(m.chances.oldView) && m.lastView.ClusterID != "" {
		seen.PD = m.lastView
	}
	m.lastView = current
	seen.Now, seen.RegionsKnown, seen.Groups = m.now, true, []v1alpha1.Group{m.group}
	lost := !seen.Lease.IsFree() && !slices.ContainsFunc(seen.Instances, seen.Lease.IsHeldBy)
	seen.HolderRecreated = lost && seen.Lease.Recreating != ""
	seen.HolderLost = lost && seen.Lease.Recreating == ""
	return seen, current
}

// reconcile is one reconcile of the operator, which crashes after so many writes.
func (m *simulation) reconcile(crashAfter int) {
	seen, current := m.observe()
	p, err := makePlan(m.group, seen)
	if err == nil && p.Question != nil {
		seen.Answer = &observation.RegionAnswer{Stores: p.Question.Stores}
		p, err = makePlan(m.group, seen)
	}
	require.NoError(m.t, err)
	m.actual.Hold, m.plan = p.Hold, p
	m.writes, m.crashAfter, m.refused = 0, crashAfter, false
	if err := m.executePlan(p, current); !errors.Is(err, errCrashed) {
		m.reportStatus(seen, p)
	}
}

// executePlan does what a plan says, if PD as it is now allows it.
func (m *simulation) executePlan(p groupPlan, current pd.View) error {
	for _, c := range p.Rechecks {
		if may := c.Still(current); !may.IsAllowed() {
			m.addStep("the plan is not carried out because of Instance %s: %s", c.Instance, may.Reason())
			return errRefused
		}
	}
	for _, execute := range []func(groupPlan) error{m.storeRevision, m.takeLease, m.writeInstances, m.callPD, m.deleteInstances, m.releaseLease, m.evictLeaders} {
		if err := execute(p); err != nil {
			return err
		}
	}
	return nil
}

// write notes a write that is made now, unless the operator crashes before.
func (m *simulation) write(format string, args ...any) error {
	if m.crashAfter == 0 {
		m.addStep("the operator crashes before: "+format, args...)
		return errCrashed
	}
	m.crashAfter--
	m.writes++
	m.addStep(format, args...)
	return nil
}

func (m *simulation) storeRevision(p groupPlan) error {
	if p.Revision == nil {
		return nil
	}
	if err := m.write("create ControllerRevision %s", p.Revision.Name); err != nil {
		return err
	}
	stored := p.Revision.DeepCopy()
	stored.UID = types.UID(stored.Name)
	m.actual.Revisions = append(slices.Clone(m.actual.Revisions), *stored)
	return nil
}

func (m *simulation) takeLease(p groupPlan) error {
	if p.Lease.Take == nil {
		return nil
	}
	next := p.Lease.State()
	if err := m.write("take the Lease for %s, batch %v: %s", next.Holder, next.Batch, p.Lease.Why); err != nil {
		return err
	}
	if next.Since.IsZero() {
		next.Since = m.now
	}
	m.actual.Lease = next
	return nil
}

func (m *simulation) writeInstances(p groupPlan) error {
	for _, c := range p.Instances {
		old := m.actual.Instance(c.Desired.Name)
		switch {
		case old == nil:
			if err := m.createInstance(c.Desired); err != nil {
				return err
			}
		case c.Live != nil:
			if c.Stops {
				m.requireSafeStop(old)
			}
			if err := m.updateInstance(old, c.Desired); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *simulation) createInstance(desired *v1alpha1.Instance) error {
	if err := m.write("create Instance %s of revision %s", desired.Name, desired.Spec.Revision); err != nil {
		return err
	}
	i := desired.DeepCopy()
	m.serial++
	i.UID, i.Generation, i.CreationTimestamp = types.UID(fmt.Sprint("uid", m.serial)), 1, metav1.NewTime(m.now)
	m.actual.Instances = append(slices.Clone(m.actual.Instances), i)
	slices.SortFunc(m.actual.Instances, member.BySlot)
	return nil
}

// userAnnotations are those that a user sets, and that the operator's writes leave as they are.
func userAnnotations() []string {
	return []string{v1alpha1.AnnotationEvictLeaders, v1alpha1.AnnotationRemoveFirst, v1alpha1.AnnotationReplace, v1alpha1.AnnotationRestart}
}

// isSameSpec reports whether two specs are equal. The template is compared as text: byte by byte
// that would take more time than all else.
func isSameSpec(a, b v1alpha1.InstanceSpec) bool {
	if !bytes.Equal(a.PodTemplate.Raw, b.PodTemplate.Raw) {
		return false
	}
	a.PodTemplate, b.PodTemplate = runtime.RawExtension{}, runtime.RawExtension{}
	return equality.Semantic.DeepEqual(a, b)
}

func (m *simulation) updateInstance(old, desired *v1alpha1.Instance) error {
	i := old.DeepCopy()
	i.Spec, i.Finalizers, i.Annotations = desired.DeepCopy().Spec, slices.Clone(desired.Finalizers), maps.Clone(desired.Annotations)
	for _, key := range userAnnotations() {
		if value, set := old.Annotations[key]; set {
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, value)
		}
	}
	slices.Sort(i.Finalizers)
	sameSpec := isSameSpec(old.Spec, i.Spec)
	if sameSpec && maps.Equal(old.Annotations, i.Annotations) && slices.Equal(slices.Sorted(slices.Values(old.Finalizers)), i.Finalizers) {
		return nil
	}
	if !sameSpec {
		i.Generation++
	}
	if err := m.write("update Instance %s: revision %s, retire %v, stopPod %q, suspended %v, annotations %v, finalizers %v",
		i.Name, i.Spec.Revision, i.Spec.Retire, i.Spec.StopPod, i.Spec.Suspended, i.Annotations, i.Finalizers); err != nil {
		return err
	}
	m.editInstance(i.Name, func(at *v1alpha1.Instance) { *at = *i })
	return nil
}

// callPD makes all calls, also if PD refuses one: the Lease is not released then.
func (m *simulation) callPD(p groupPlan) error {
	for _, c := range p.Calls {
		if err := m.write("%s of store %s for %s", c.Verb, c.Target, c.Instance); err != nil {
			return err
		}
		if err := m.answerCall(c); err != nil {
			m.refused = true
			m.addStep("PD refuses: %v", err)
		}
	}
	return nil
}

func (m *simulation) deleteInstances(p groupPlan) error {
	for _, d := range p.Deletes {
		if err := m.write("delete Instance %s", d.Name); err != nil {
			return err
		}
		m.editInstance(d.Name, m.markDeleted)
	}
	return nil
}

// markDeleted is what the API server does with an Instance that is deleted.
func (m *simulation) markDeleted(i *v1alpha1.Instance) {
	if i.DeletionTimestamp == nil {
		i.DeletionTimestamp = ptr.To(metav1.NewTime(m.now))
	}
}

func (m *simulation) releaseLease(p groupPlan) error {
	if m.refused {
		return errRefused
	}
	if !p.Lease.Release {
		return nil
	}
	if err := m.write("release the Lease: %s", p.Lease.Why); err != nil {
		return err
	}
	m.actual.Lease = lease.State{}
	return nil
}

// evictLeaders gives the orders of users' evictions, whose failures change nothing else.
func (m *simulation) evictLeaders(p groupPlan) error {
	for _, c := range p.Evictions {
		if err := m.write("%s of store %s for %s, as a user wants", c.Verb, c.Target, c.Instance); err != nil {
			return err
		}
		if err := m.answerCall(c); err != nil {
			m.addStep("PD refuses: %v", err)
		}
	}
	return nil
}

// reportStatus writes the status of the group and its members.
func (m *simulation) reportStatus(seen observation.Snapshot, p groupPlan) {
	for _, report := range reportMembers(m.group, seen, p, m.now) {
		if m.actual.Instance(report.Instance.Name) == nil {
			continue
		}
		m.editInstance(report.Instance.Name, func(i *v1alpha1.Instance) {
			i.Status.Member = report.Status
			meta.RemoveStatusCondition(&i.Status.Conditions, v1alpha1.ConditionDrained)
			for _, c := range report.Conditions {
				replaceCondition(i, c)
			}
		})
	}
	m.group = m.group.DeepCopy()
	m.group.Status, _, _ = reportStatus(m.group, seen, p, step.Done(), m.now)
}

// replaceCondition sets a condition as it is, with its times.
func replaceCondition(i *v1alpha1.Instance, c metav1.Condition) {
	if old := meta.FindStatusCondition(i.Status.Conditions, c.Type); old != nil {
		*old = c
		return
	}
	i.Status.Conditions = append(i.Status.Conditions, c)
}

// answerCall is PD's answer to a call.
func (m *simulation) answerCall(c component.Call) error {
	if m.pdDown {
		return errors.New("PD does not answer")
	}
	store := m.findStore(c.Target)
	if store == nil && c.Verb != component.StopEvictingLeaders {
		return errors.New("PD has no such store")
	}
	switch c.Verb {
	case component.EvictLeaders:
		if !slices.Contains(m.actual.PD.EvictLeader, c.Target) {
			m.actual.PD.EvictLeader = append(slices.Clone(m.actual.PD.EvictLeader), c.Target)
		}
	case component.StopEvictingLeaders:
		m.actual.PD.EvictLeader = slices.DeleteFunc(slices.Clone(m.actual.PD.EvictLeader), func(id string) bool { return id == c.Target })
	case component.DeleteStore:
		return m.deleteStore(store)
	case component.RestoreStore:
		if store.State == pd.StateOffline {
			store.State, store.NotUpSince = pd.StateDisconnected, m.now
		}
	default:
		require.Fail(m.t, "unknown call", c.Verb)
	}
	return nil
}
