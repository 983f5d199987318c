package controller

import (
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
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// server is one slot of the enumeration: empty, or a server of the old or the new
// version that is so.
type server struct{ version, is string }

func (v server) String() string { return strings.TrimSpace(v.version + " " + v.is) }

// lives are the words for how a server may be. A broken one has a reason not to
// serve, one that starts has none; one that is retired or deleted serves.
func lives() []string { return []string{"serves", "starts", "broken", "retired", "deleted"} }

// slotsOf returns what a slot may hold.
func slotsOf(lives ...string) []server {
	out := []server{{}}
	for _, version := range []string{"old", "new"} {
		for _, is := range lives {
			out = append(out, server{version, is})
		}
	}
	return out
}

// wish is an edit of the spec, or what the cluster is like around the group.
type wish struct {
	replicas, surge int32
	version         string   // that is wanted
	flags           []string // in words, see apply
	lease           string   // free, ours or another's
}

func (w wish) has(flag string) bool { return slices.Contains(w.flags, flag) }

// state is one state of the enumeration.
type state struct {
	slots []server
	wish
}

func (s state) String() string {
	return fmt.Sprintf("%d slots %q, replicas %d, surge %d, %s version wanted, %q, Lease %s", len(s.slots), s.slots, s.replicas, s.surge, s.version, s.flags, s.lease)
}

// space is one part of the enumeration: the product of its parts.
type space struct {
	name     string
	slots    int
	servers  []server
	replicas []int32
	surges   []int32
	versions []string
	flags    [][]string
	leases   []string
}

func (s space) String() string {
	return fmt.Sprintf("%s: %d kinds of server in %d slots × %d replicas × %d surges × %d versions × %d sets of wishes × %d holders of the Lease",
		s.name, len(s.servers), s.slots, len(s.replicas), len(s.surges), len(s.versions), len(s.flags), len(s.leases))
}

func (s space) Size() int {
	n := len(s.replicas) * len(s.surges) * len(s.versions) * len(s.flags) * len(s.leases)
	for range s.slots {
		n *= len(s.servers)
	}
	return n
}

func (s space) Each(visit func(state)) {
	grouptest.VisitCombinations(s.slots, s.servers, func(slots []server) {
		for _, w := range s.wishes() {
			visit(state{slots, w})
		}
	})
}

func (s space) wishes() []wish {
	var out []wish
	for _, replicas := range s.replicas {
		for _, surge := range s.surges {
			for _, version := range s.versions {
				for _, flags := range s.flags {
					for _, lease := range s.leases {
						out = append(out, wish{replicas, surge, version, flags, lease})
					}
				}
			}
		}
	}
	return out
}

// subsets returns every subset of flags.
func subsets(flags ...string) [][]string {
	out := [][]string{nil}
	for _, flag := range flags {
		for _, set := range slices.Clone(out) {
			out = append(out, append(slices.Clone(set), flag))
		}
	}
	return out
}

func spaces() []space {
	fresh, both, free := []string{"new"}, []string{"old", "new"}, []string{"free"}
	return []space{
		{"four servers", 4, slotsOf("serves", "starts", "deleted"), []int32{2, 3}, []int32{1}, fresh, subsets(), free},
		{"three servers", 3, slotsOf(lives()...), []int32{1, 2}, []int32{0, 1}, fresh, subsets("remove the first"), free},
		{"two servers and all wishes", 2, slotsOf("serves", "broken", "retired", "deleted"), []int32{1, 2}, []int32{1}, fresh,
			subsets("paused", "held", "suspended", "no PD", "not its turn"), []string{"free", "ours", "another's"}},
		{"three servers and an upgrade", 3, slotsOf("serves", "starts", "deleted"), []int32{2}, []int32{0, 1}, fresh,
			[][]string{{"known"}, {"known", "told"}, {"known", "held"}, {"known", "told", "paused"}}, free},
		{"two servers and a canary", 2, slotsOf(lives()...), []int32{1, 2}, []int32{0, 2}, both, subsets("canary", "failover", "no PD"), free},
	}
}

// stateSpace makes the objects of states.
type stateSpace struct {
	revisions map[string]string // by version
	stored    []appsv1.ControllerRevision
	files     map[string]bool
	instances map[string]*v1alpha1.Instance
	pd        *v1alpha1.PDGroup
	tikv      map[bool]*v1alpha1.TiKVGroup // by whether it has arrived
}

// images are the versions by the words for them.
func images() map[string]string { return map[string]string{"old": "v8.5.6", "new": "v8.5.7"} }

func newStateSpace(t *testing.T) *stateSpace {
	t.Helper()
	seen := open()
	b := &stateSpace{revisions: map[string]string{}, files: map[string]bool{}, instances: map[string]*v1alpha1.Instance{}, pd: seen.PDGroup, tikv: map[bool]*v1alpha1.TiKVGroup{}}
	for _, arrived := range []bool{false, true} {
		kv := seen.TiKVGroups[0].DeepCopy()
		set := conditions.New(nil, kv.Generation, clock())
		end := step.Wait("Instance", time.Minute, v1alpha1.ReasonRestarting, "Instance kv-0 is being restarted")
		if arrived {
			end = step.Done()
		}
		set.Finish(conditions.Verdict{Serving: true, Summary: "it serves", Outcome: end})
		kv.Status.Conditions = set.List()
		b.tikv[arrived] = kv
	}
	for _, version := range []string{"old", "new"} {
		p, err := b.plan(b.group(wish{replicas: 4, version: version}), seen)
		require.NoError(t, err)
		b.revisions[version], b.files[p.ConfigMap.Name] = p.Target.Hash, true
		b.stored = append(b.stored, *p.Revision)
		for slot, c := range p.Instances {
			for _, life := range lives() {
				b.instances[fmt.Sprint(slot, version, life)] = b.instance(c.Desired, life)
			}
		}
	}
	require.NotEqual(t, b.revisions["old"], b.revisions["new"])
	return b
}

// plan is plan with a small pod: what is in it is nothing to the plan.
func (b *stateSpace) plan(g *v1alpha1.TiDBGroup, s snapshot) (groupPlan, error) {
	r := component.Rendering{Inputs: g.Spec.Version}
	r.Template.Spec.Containers = []corev1.Container{{Name: "tidb", Image: g.Spec.Version}}
	return planWith(g, s, r)
}

func (b *stateSpace) instance(desired *v1alpha1.Instance, life string) *v1alpha1.Instance {
	i := desired.DeepCopy()
	i.UID, i.Generation, i.ResourceVersion, i.CreationTimestamp = types.UID("uid-"+i.Name), 1, "1", metav1.NewTime(clock().Add(-time.Hour))
	i.Finalizers = []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance}
	i.Status = v1alpha1.InstanceStatus{PodUID: types.UID("pod-" + i.Name), Revision: i.Spec.Revision, NodeName: "n1", PodIP: "10.0.0.1", ObservedGeneration: 1}
	set := conditions.New(nil, 1, clock().Add(-time.Hour))
	switch life {
	case "broken":
		set.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonImagePullFailed, "no such image")
	case "starts":
		set.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonPodNotReady, "the pod starts")
	default:
		set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the pod runs")
	}
	i.Status.Conditions = set.List()
	switch life {
	case "retired":
		i.Spec.Retire = true
	case "deleted":
		i.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	return i
}

// group returns the group with a wish for a spec. All members had the old revision
// once.
func (b *stateSpace) group(w wish) *v1alpha1.TiDBGroup {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Version, g.Spec.Replicas, g.Spec.MaxSurge = images()[w.version], ptr.To(w.replicas), ptr.To(w.surge)
		g.Spec.Paused, g.Spec.Suspended = w.has("paused"), w.has("suspended")
		if w.has("held") {
			g.Spec.Disruption = &v1alpha1.Disruption{Paused: true}
		}
		if w.has("canary") {
			g.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
		}
		if w.has("failover") {
			g.Spec.Failover = &v1alpha1.TiDBFailover{Max: 1, After: metav1.Duration{Duration: 5 * time.Minute}}
		}
	})
	g.Status.CurrentRevision = b.revisions["old"]
	if w.has("known") {
		g.Status.Version = images()["old"]
	}
	if w.has("told") {
		g.Status.Upgrade = &v1alpha1.TiDBUpgrade{From: images()["old"], To: images()["new"], State: v1alpha1.UpgradeStarted, Since: metav1.NewTime(clock())}
	}
	return g
}

// snapshot makes a state. The objects are shared: a plan changes none of them.
func (b *stateSpace) snapshot(st state) (*v1alpha1.TiDBGroup, snapshot) {
	g := b.group(st.wish)
	s := observation.Snapshot{Now: clock(), Revisions: b.stored, ConfigMaps: b.files, Lease: b.lease(st.lease)}
	s.TiKVGroups = []*v1alpha1.TiKVGroup{b.tikv[!st.has("not its turn")]}
	s.Groups = []v1alpha1.Group{s.TiKVGroups[0], g}
	if !st.has("no PD") {
		s.PDGroup = b.pd
	}
	for slot, v := range st.slots {
		if v.version == "" {
			continue
		}
		i := b.instances[fmt.Sprint(slot, v.version, v.is)]
		if slot == 0 && st.has("remove the first") {
			i = i.DeepCopy()
			i.Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""}
		}
		s.Instances = append(s.Instances, i)
	}
	return g, snapshot{Snapshot: s}
}

// lease returns the cluster's Lease: TiDB never takes it, and must not mind it.
func (b *stateSpace) lease(whose string) lease.State {
	switch whose {
	case "ours":
		return lease.NewState(lease.NewHolder(b.instances["0oldserves"]), clock().Add(-time.Second), 0)
	case "another's":
		return lease.NewState(lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "basic-tikv-0", UID: "another"}, clock().Add(-time.Second), 0)
	}
	return lease.State{}
}
