package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// storeCase is one slot of the enumeration: empty, or a store of the old or the new
// version that is so.
type storeCase struct{ version, is string }

func (m storeCase) String() string { return strings.TrimSpace(m.version + " " + m.is) }

// life is what a word for a member means: its pod, its store as PD lists it, empty
// for not, and what is being done to it.
type life struct {
	pod      string // serves, starts or broken
	store    string
	recorded bool
	mark     member.Verb
	retire   bool
	deleted  bool
}

func lives() map[string]life {
	return map[string]life{
		"serves":      {"serves", pd.StateUp, true, "", false, false},
		"forgotten":   {"serves", pd.StateDisconnected, true, "", false, false}, // by a new leader of PD
		"broken":      {"broken", pd.StateDown, true, "", false, false},
		"joins":       {"starts", "", false, "", false, false},
		"catches up":  {"serves", pd.StateUp, true, member.Restart, false, false}, // was restarted, and says Idle
		"restarts":    {"starts", pd.StateDisconnected, true, member.Restart, false, false},
		"drains":      {"serves", pd.StateUp, true, member.Remove, true, false},
		"offline":     {"serves", pd.StateOffline, true, member.Remove, true, false},
		"left":        {"serves", "", true, member.Remove, true, false},
		"taken back":  {"serves", pd.StateOffline, true, member.Remove, false, false},
		"deleted":     {"serves", pd.StateUp, true, "", false, true},
		"deleted off": {"serves", pd.StateOffline, true, member.Remove, false, true},
		"buried":      {"broken", pd.StateDown, true, member.Remove, false, true}, // what is made of a dead one
	}
}

func slotsOf(words ...string) []storeCase {
	out := []storeCase{{}}
	for _, version := range []string{"old", "new"} {
		for _, is := range words {
			out = append(out, storeCase{version, is})
		}
	}
	return out
}

func allLives() []string {
	var out []string
	for word := range lives() {
		out = append(out, word)
	}
	slices.Sort(out)
	return out
}

// failoverAfter is spec.failover.after where there is one; every member has been what it
// is for longer, and so has one that is down been dead.
const failoverAfter = 30 * time.Second

// wish is an edit of the spec, or what the cluster is like around the group. The
// wishes add and replace are for those that are dead.
type wish struct {
	replicas int32
	table    int // replicas that a table wants, 0 for no table
	flags    []string
	lease    string // free, first, another's or lost
}

func (w wish) has(flag string) bool { return slices.Contains(w.flags, flag) }

// policies of failover by the words for them.
func policies() map[string]v1alpha1.FailoverPolicy {
	return map[string]v1alpha1.FailoverPolicy{"add": v1alpha1.AddOnFailover, "replace": v1alpha1.ReplaceOnFailover}
}

// failover is the word for what is done about dead stores; empty if nothing is.
func (w wish) failover() string {
	for word := range policies() {
		if w.has(word) {
			return word
		}
	}
	return ""
}

// state is one state of the enumeration. The new version is wanted in all.
type state struct {
	slots []storeCase
	wish
}

func (s state) String() string {
	return fmt.Sprintf("%d slots %q, replicas %d, a table wants %d, %q, Lease %s", len(s.slots), s.slots, s.replicas, s.table, s.flags, s.lease)
}

// space is one part of the enumeration: the product of its parts.
type space struct {
	name     string
	slots    int
	members  []storeCase
	replicas []int32
	tables   []int
	flags    [][]string
	leases   []string
}

func (s space) String() string {
	return fmt.Sprintf("%s: %d kinds of member in %d slots × %d replicas × %d tables × %d sets of wishes × %d holders of the Lease",
		s.name, len(s.members), s.slots, len(s.replicas), len(s.tables), len(s.flags), len(s.leases))
}

func (s space) Size() int {
	n := len(s.replicas) * len(s.tables) * len(s.flags) * len(s.leases)
	for range s.slots {
		n *= len(s.members)
	}
	return n
}

func (s space) Each(visit func(state)) {
	grouptest.VisitCombinations(s.slots, s.members, func(slots []storeCase) {
		for _, replicas := range s.replicas {
			for _, table := range s.tables {
				for _, flags := range s.flags {
					for _, lease := range s.leases {
						visit(state{slots, wish{replicas, table, flags, lease}})
					}
				}
			}
		}
	})
}

func spaces() []space {
	return []space{
		{"two stores", 2, slotsOf(allLives()...), []int32{0, 1, 2}, []int{0, 1, 2}, [][]string{nil}, []string{"free", "first"}},
		{"three stores", 3, slotsOf("serves", "broken", "offline"), []int32{1, 2, 3}, []int{0, 2}, [][]string{nil}, []string{"free", "first", "lost"}},
		{"two stores and all wishes", 2, slotsOf("serves", "broken", "drains", "deleted"), []int32{1, 2}, []int{1},
			append(each("paused", "held", "suspended", "no PD", "no answer", "no quorum", "rules off", "not its turn", "another's is down"),
				[]string{"no answer", "paused"}, []string{"no answer", "suspended"}, []string{"no PD", "no answer"}), []string{"free", "first", "another's", "lost"}},
		{"three stores and what is done about dead ones", 3, slotsOf("serves", "broken", "buried"), []int32{1, 2}, []int{0, 2}, failovers(), []string{"free", "first"}},
		{"two stores, dead ones and all wishes", 2, slotsOf("serves", "broken", "restarts", "deleted", "buried"), []int32{1, 2}, []int{1},
			failovers("paused", "held", "suspended", "no answer", "no quorum", "rules off", "not its turn"), []string{"free", "first", "lost"}},
	}
}

// each returns a list for each word.
func each(words ...string) [][]string {
	var out [][]string
	for _, word := range words {
		out = append(out, []string{word})
	}
	return out
}

// failovers returns what may be done about dead stores, with each word.
func failovers(words ...string) [][]string {
	if len(words) == 0 {
		return each("add", "replace")
	}
	var out [][]string
	for _, word := range words {
		out = append(out, []string{"add", word}, []string{"replace", word})
	}
	return out
}

// stateSpace makes the objects of states.
type stateSpace struct {
	revisions map[string]string // by version
	stored    []appsv1.ControllerRevision
	files     map[string]bool
	instances map[string]*v1alpha1.Instance // by slot, version and word
	base      observation.Snapshot
}

// images are the versions by the words for them.
func images() map[string]string { return map[string]string{"old": "v8.5.6", "new": "v8.5.7"} }

func newStateSpace(t *testing.T) *stateSpace {
	t.Helper()
	b := &stateSpace{revisions: map[string]string{}, files: map[string]bool{}, instances: map[string]*v1alpha1.Instance{}, base: world(t, sample(), 0)}
	b.base.PD.Bootstrapped = true
	for n := range 3 {
		b.base.PD.Stores = append(b.base.PD.Stores, pd.Store{ID: fmt.Sprint(91 + n), State: pd.StateUp, Started: true, Regions: 9, Address: fmt.Sprintf("kv-%d.kv-peer.shop.svc:20160", n)})
	}
	for _, version := range []string{"old", "new"} {
		g := b.group(wish{replicas: 3})
		g.Spec.Version = images()[version]
		p, err := b.plan(g, b.base)
		require.NoError(t, err)
		b.revisions[version], b.files[p.ConfigMap.Name] = p.Target.Hash, true
		b.stored = append(b.stored, *p.Revision)
		for slot, c := range p.Instances {
			for word, is := range lives() {
				b.instances[fmt.Sprint(slot, version, word)] = b.instance(c.Desired, is, slot)
			}
		}
	}
	require.NotEqual(t, b.revisions["old"], b.revisions["new"])
	return b
}

// plan is plan with a small pod: what is in it is nothing to the plan.
func (b *stateSpace) plan(g *v1alpha1.TiFlashGroup, s observation.Snapshot) (groupPlan, error) {
	r := component.Rendering{Inputs: g.Spec.Version}
	r.Template.Spec.Containers = []corev1.Container{{Name: "tiflash", Image: g.Spec.Version}}
	return planWith(g, s, r)
}

func (b *stateSpace) instance(desired *v1alpha1.Instance, is life, slot int) *v1alpha1.Instance {
	i := desired.DeepCopy()
	i.UID, i.Generation, i.ResourceVersion, i.CreationTimestamp = types.UID("uid-"+i.Name), 1, "1", metav1.NewTime(now().Add(-time.Hour))
	i.Finalizers = []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}
	i.Spec.Retire = is.retire
	if is.mark != "" {
		i.Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(is.mark)}
	}
	if is.deleted {
		i.DeletionTimestamp = ptr.To(metav1.NewTime(now()))
	}
	i.Status = v1alpha1.InstanceStatus{PodUID: types.UID("pod-" + i.Name), Revision: i.Spec.Revision, PodIP: fmt.Sprintf("10.0.0.%d", slot+1), NodeName: "n1", ObservedGeneration: 1}
	if is.recorded {
		i.Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1), State: is.store}
	}
	set := conditions.New(nil, 1, now().Add(-time.Minute))
	reason, message := v1alpha1.ReasonPodNotReady, "the pod starts"
	switch is.pod {
	case "serves":
		set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the pod runs")
		set.MarkTrue(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodReady, "the pod runs")
	case "broken":
		reason, message = v1alpha1.ReasonContainerCrashing, "it crashes"
		fallthrough
	default:
		set.MarkFalse(v1alpha1.ConditionReady, reason, message)
		set.MarkFalse(v1alpha1.ConditionPodReady, reason, message)
	}
	if is.store == pd.StateUp || is.store == pd.StateDisconnected && is.pod == "serves" {
		set.MarkTrue(v1alpha1.ConditionHealthy, v1alpha1.ReasonMemberHealthy, "it is Up")
	}
	i.Status.Conditions = set.List()
	return i
}

func (b *stateSpace) group(w wish) *v1alpha1.TiFlashGroup {
	g := sample()
	g.Spec.Version, g.Spec.Replicas = images()["new"], ptr.To(w.replicas)
	g.Spec.Paused, g.Spec.Suspended = w.has("paused"), w.has("suspended")
	if w.has("held") {
		g.Spec.Disruption = &v1alpha1.Disruption{Paused: true}
	}
	g.Status.CurrentRevision = b.revisions["old"]
	if policy := policies()[w.failover()]; policy != "" {
		g.Spec.Failover = &v1alpha1.Failover{Policy: policy, After: &metav1.Duration{Duration: failoverAfter}}
		// The new version has served before, or no store would count as dead.
		g.Status.CurrentRevision = b.revisions["new"]
	}
	return g
}

// tableRule is the rule of a table with replicas on TiFlash.
func tableRule(replicas int) []pd.Rule {
	if replicas == 0 {
		return nil
	}
	return []pd.Rule{table(replicas)}
}

// snapshot makes a state. The objects are shared: a plan changes none of them.
func (b *stateSpace) snapshot(st state) (*v1alpha1.TiFlashGroup, observation.Snapshot) {
	g, s := b.group(st.wish), b.base
	s.Revisions, s.ConfigMaps, s.Lease = b.stored, b.files, b.lease(st.lease)
	s.HolderLost = st.lease == "lost" || st.lease == "first" && st.slots[0].version == ""
	s.PD.Rules, s.PD.Stores = tableRule(st.table), slices.Clone(s.PD.Stores)
	before := &v1alpha1.PDGroup{ObjectMeta: s.PDGroup.ObjectMeta}
	before.Status = s.PDGroup.Status
	before.Status.Conditions = []metav1.Condition{is("Ready", true), is("UpToDate", !st.has("not its turn"))}
	s.PDGroup = before
	s.Groups = []v1alpha1.Group{before, g}
	for slot, m := range st.slots {
		if m.version == "" {
			continue
		}
		i := b.instances[fmt.Sprint(slot, m.version, m.is)]
		s.Instances = append(s.Instances, i)
		s.StatusPorts = saying(s.StatusPorts, i, m.is == "catches up")
		if store := lives()[m.is].store; store != "" {
			s.PD.Stores = append(s.PD.Stores, columns(fmt.Sprint(slot+1), fmt.Sprintf("basic-tiflash-%d", slot), "basic-tiflash", store))
		}
	}
	if st.has("another's is down") {
		s.PD.Stores = append(s.PD.Stores, columns("81", "other-0", "other", pd.StateDown))
	}
	switch {
	case st.has("rules off"):
		s.PD.PlacementRules = false
	case st.has("no quorum"):
		s.PD.Leader = ""
	}
	if st.has("no PD") {
		s.PDGroup, s.Groups = nil, s.Groups[1:]
	}
	if st.has("no answer") {
		s.PD = pd.View{Err: errors.New("no answer")}
	}
	return g, s
}

// saying adds what a running store says of itself to what others do.
func saying(said map[string]member.StatusPortAnswer, i *v1alpha1.Instance, idle bool) map[string]member.StatusPortAnswer {
	since, ready := member.ReadySince(i)
	if !ready {
		return said
	}
	if said == nil {
		said = map[string]member.StatusPortAnswer{}
	}
	state := statusport.Running
	if idle {
		state = "Idle"
	}
	said[i.Name] = member.StatusPortAnswer{Pod: i.Status.PodUID, Since: since, State: state}
	return said
}

// columns is a TiFlash store as PD lists it.
func columns(id, pod, group, state string) pd.Store {
	return pd.Store{ID: id, State: state, NotUpSince: notUpSince(state), Started: true, Regions: 5, Labels: map[string]string{"engine": "tiflash"}, Address: fmt.Sprintf("%s.%s-peer.shop.svc:3930", pod, group)}
}

// notUpSince is since when a store in a state is Disconnected or Down: for long.
func notUpSince(state string) time.Time {
	if state == pd.StateDown || state == pd.StateDisconnected {
		return now().Add(-time.Hour)
	}
	return time.Time{}
}

func (b *stateSpace) lease(whose string) lease.State {
	since := now().Add(-time.Second)
	switch whose {
	case "first":
		return lease.NewState(lease.NewHolder(b.instances["0oldserves"]), since, 0)
	case "another's":
		return lease.NewState(lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "basic-tikv-0", UID: "another"}, since, 0)
	case "lost":
		return lease.NewState(lease.Holder{Kind: v1alpha1.KindTiFlashGroup, Instance: "basic-tiflash-0", UID: "gone"}, since, 0)
	}
	return lease.State{}
}
