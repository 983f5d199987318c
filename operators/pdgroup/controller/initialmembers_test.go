package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// volume is what a slot has when a PDGroup is made.
type volume int

const (
	none     volume = iota
	written         // a claim with PD's data
	restored        // a claim with PD's data that has not got its volume yet
	blank           // a claim of a member that never started, and has no volume
	idle            // a claim of a member that never started, and has a volume
	set             // a claim of a member that has left: retired
)

// keeps adds the claims of a slot.
func keeps(s *observation.Snapshot, slot int32, v volume) {
	if v == none {
		return
	}
	name := fmt.Sprintf("basic-pd-%d", slot)
	claim := metav1.ObjectMeta{Name: "data-" + name, CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))}
	if v == written || v == idle {
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	if v == set {
		claim.Annotations = map[string]string{v1alpha1.AnnotationRetired: "true"}
		s.RetiredSlots[slot] = true
	}
	s.Claims[name] = append(s.Claims[name], claim)
}

func unborn(volumes ...volume) observation.Snapshot {
	s := observation.Snapshot{Now: clock(), PD: pd.View{Err: errNoMembers}, Claims: map[string][]metav1.ObjectMeta{}, RetiredSlots: map[int32]bool{}}
	for slot, v := range volumes {
		keeps(&s, int32(slot), v)
	}
	return s
}

// makes adds Instances of a plan to what is seen, with their claims or without.
func makes(s *observation.Snapshot, p groupPlan, which func(n int) (made, claimed bool)) {
	n := 0
	for _, c := range p.Instances {
		if c.Live != nil {
			continue
		}
		made, claimed := which(n)
		n++
		if !made {
			continue
		}
		i := c.Desired.DeepCopy()
		i.UID, i.Generation, i.CreationTimestamp = types.UID("uid-"+i.Name), 1, metav1.NewTime(clock())
		s.Instances = append(s.Instances, i)
		if claimed && len(s.Claims[i.Name]) == 0 {
			s.Claims[i.Name] = []metav1.ObjectMeta{{Name: "data-" + i.Name, CreationTimestamp: i.CreationTimestamp}}
		}
	}
	slices.SortFunc(s.Instances, func(a, b *v1alpha1.Instance) int { return int(a.Spec.Slot - b.Spec.Slot) })
}

// P2, P6: whatever claims a new PDGroup finds, and however far its first plan was
// carried out before the next one, those that start on empty volumes are no
// majority beside data, and each that bootstraps names itself and the same others.
func TestPD03WhoMayBootstrapACluster(t *testing.T) {
	const slots = 3
	plans := 0
	var rec func(volumes []volume)
	try := func(volumes []volume, replicas int32) {
		state := fmt.Sprintf("volumes %v, replicas %d", volumes, replicas)
		g := stored(replicasOf(replicas))
		first := unborn(volumes...)
		p := mustPlan(t, g, first)
		n := len(created(p))
		require.NotZero(t, n, state)
		for made := 0; made < 1<<n; made++ {
			for claimed := 0; claimed < 1<<n; claimed++ {
				if claimed&^made != 0 {
					continue
				}
				s := unborn(volumes...)
				makes(&s, p, func(n int) (bool, bool) { return made&(1<<n) != 0, claimed&(1<<n) != 0 })
				makes(&s, mustPlan(t, g, s), func(int) (bool, bool) { return true, false })
				plans++
				list, empty, data := "", 0, 0
				for _, i := range s.Instances {
					arg := startArg(t, i)
					v := none
					if int(i.Spec.Slot) < len(volumes) {
						v = volumes[i.Spec.Slot]
					}
					require.NotEqual(t, set, v, "%s: slot %d starts on a retired claim", state, i.Spec.Slot)
					if v == written || v == restored {
						data++
					}
					if !strings.HasPrefix(arg, bootstrap.Flag) {
						continue
					}
					require.True(t, list == "" || list == arg, "%s: two lists %s, %s", state, list, arg)
					list = arg
					require.Contains(t, arg, i.Name+"=", "%s: it does not name itself", state)
					if v != written && v != restored {
						empty++
					}
				}
				all := 0
				for _, v := range volumes {
					if v == written || v == restored {
						all++
					}
				}
				require.Equal(t, all, data, "%s: who has data starts, first of all", state)
				if n := strings.Count(list, "http://"); data > 0 && empty >= pd.Majority(n) {
					require.Failf(t, "a second cluster", "%s: %d of %d initial members start empty", state, empty, n)
				}
			}
		}
	}
	rec = func(volumes []volume) {
		if len(volumes) < slots {
			for _, v := range []volume{none, written, restored, blank, idle, set} {
				rec(append(slices.Clone(volumes), v))
			}
			return
		}
		count := func(v volume) int {
			return len(slices.DeleteFunc(slices.Clone(volumes), func(w volume) bool { return w != v }))
		}
		bound, data := count(written)+count(idle), count(written)+count(restored)
		if data > 0 && (bound > 0 && count(idle) >= pd.Majority(bound) || bound == 0 && count(blank) >= pd.Majority(data+count(blank))) {
			return // these cannot be told from data: decision 0031
		}
		for replicas := int32(1); replicas <= slots+1; replicas++ {
			try(volumes, replicas)
		}
	}
	rec(nil)
	fmt.Printf("initial members: %d plans checked\n", plans)
}

// P2: initial members that never got a volume, of a cluster whose other claims are lost.
func TestPD03AClaimWithoutAVolumeBootstrapsNothingBesideOneThatHasIt(t *testing.T) {
	p := mustPlan(t, stored(replicasOf(5)), unborn(none, none, written, blank, blank))
	var initial []string
	for _, c := range p.Instances {
		if strings.HasPrefix(startArg(t, c.Desired), bootstrap.Flag) {
			initial = append(initial, c.Desired.Name)
		}
	}
	assert.Equal(t, []string{"basic-pd-2", "basic-pd-3", "basic-pd-4"}, created(p))
	assert.Equal(t, []string{"basic-pd-2"}, initial)
}

// fate is what becomes of an initial member while its PDGroup is recreated.
type fate int

const (
	remains fate = iota // and has data
	waits               // but its pod never started
	goes                // and leaves its claim, with data
	expires             // with its data
	never               // and leaves a claim without a volume: it never started
	fates
)

// P2: whatever is left of the initial members of a PDGroup that was deleted without its
// Instances, those that start on empty volumes are no majority beside data of a
// cluster that may be there, and all name the same initial members.
func TestPD03InstancesThatAreTakenOverBootstrapNoSecondCluster(t *testing.T) {
	states := 0
	for n := 1; n <= 4; n++ {
		all := 1
		for range n {
			all *= int(fates)
		}
		for state := range all {
			g := stored(replicasOf(int32(n)))
			s := unborn()
			makes(&s, mustPlan(t, g, s), func(int) (bool, bool) { return true, true })
			before := startArg(t, s.Instances[0])
			g.CreationTimestamp = metav1.NewTime(clock().Add(time.Hour))
			s.Now = clock().Add(time.Hour)
			ran, data := 0, map[string]bool{}
			var left []*v1alpha1.Instance
			var list []fate
			for slot, rest := 0, state; slot < n; slot, rest = slot+1, rest/int(fates) {
				i, f := s.Instances[slot], fate(rest%int(fates))
				list = append(list, f)
				if f == remains || f == goes || f == expires {
					ran++
					s.Claims[i.Name][0].Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
				}
				if f == remains || f == waits {
					left = append(left, i)
				}
				if f == expires {
					delete(s.Claims, i.Name)
				}
				data[i.Name] = f == remains || f == goes
			}
			s.Instances = left
			if len(left) == 0 || ran < pd.Majority(n) {
				continue // there is no cluster yet, or claims alone decide
			}
			makes(&s, mustPlan(t, g, s), func(int) (bool, bool) { return true, true })
			makes(&s, mustPlan(t, g, s), func(int) (bool, bool) { return true, true })
			empty, some := 0, false
			for _, i := range s.Instances {
				some = some || data[i.Name]
				if arg := startArg(t, i); strings.HasPrefix(arg, bootstrap.Flag) {
					require.Equal(t, before, arg, "%v: slot %d names others", list, i.Spec.Slot)
					if !data[i.Name] {
						empty++
					}
				}
			}
			require.False(t, some && empty >= pd.Majority(n), "%v: %d of %d initial members start empty", list, empty, n)
			for name, kept := range data {
				require.True(t, !kept || s.Instance(name) != nil, "%v: %s has data and does not start", list, name)
			}
			states++
		}
	}
	fmt.Printf("initial members taken over: %d states checked\n", states)
}

// P2, P3, S M2: no member bootstraps beside a claim of an unknown owner; once
// the cluster is bootstrapped the claim keeps no member from joining.
func TestPD03NoMemberBootstrapsBesideAClaimOfAnUnknownOwner(t *testing.T) {
	g := sample("ns")
	g.UID = "group"
	s := unborn(none, none, none)
	s.ForeignClaims = []string{"data-basic-pd-1", "data-basic-pd-4"}
	p := mustPlan(t, g, s)
	assert.Empty(t, p.Instances)
	assert.Equal(t, step.KindStall, p.Outcome.Kind)
	assert.Equal(t, v1alpha1.ReasonClaimRejected, p.Outcome.Reason)
	for _, says := range []string{"annotate pvc data-basic-pd-1 groups.tidb.dev/adopt=basic-pd-1", "kubectl -n ns delete pvc data-basic-pd-1", "likewise data-basic-pd-4"} {
		assert.Contains(t, p.Outcome.Message, says)
	}
	assert.NotZero(t, p.Outcome.After)

	// A user has said so of one, which then starts alone.
	s.ForeignClaims = nil
	keeps(&s, 1, written)
	p = mustPlan(t, g, s)
	require.Len(t, p.Instances, 1)
	assert.Equal(t, "basic-pd-1", p.Instances[0].Desired.Name)

	g.Status.ClusterID = "7"
	s.ForeignClaims = []string{"data-basic-pd-2"}
	assert.Equal(t, step.KindDone, bootstrap.ForeignClaims(g, s).Kind)
}

// P2, P5, P11.
func TestPD03AGroupThatComesBack(t *testing.T) {
	runs := func(s *observation.Snapshot, age time.Duration) {
		for _, i := range s.Instances {
			i.CreationTimestamp = metav1.NewTime(clock().Add(-age))
			tells(i, age, "Ready", "False", "PodNotReady", "PodReady", "False", "PodNotReady")
		}
	}
	later := func(g *v1alpha1.PDGroup) { g.CreationTimestamp = metav1.NewTime(clock().Add(-3 * time.Minute)) }
	crashes := func(s *observation.Snapshot, slot int, ready metav1.ConditionStatus) {
		i := s.Instances[slot]
		set := conditions.New(i.Status.Conditions, i.Generation, i.CreationTimestamp.Time)
		set.SetCondition(v1alpha1.ConditionPodReady, ready, v1alpha1.ReasonContainerCrashing, "the log says why")
		i.Status.Conditions = set.List()
	}
	for name, c := range map[string]struct {
		replicas   int32
		edit       func(*v1alpha1.PDGroup)
		volumes    []volume
		change     func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot)
		creates    []string
		bootstraps bool
		kind       step.Kind
		says       []string
		unsaid     string
	}{
		"with more members than claims starts those that have one": {5, nil, []volume{written, none, written}, nil,
			[]string{"basic-pd-0", "basic-pd-2"}, true, step.KindWait, []string{"creating 5 of 5 Instances: claims of former members are left", "basic-pd-0, basic-pd-2"}, ""},
		"with fewer members than claims starts all of them": {1, nil, []volume{written, written, written}, nil,
			[]string{"basic-pd-0", "basic-pd-1", "basic-pd-2"}, true, step.KindWait, nil, ""},
		"waits for what another group has left": {3, nil, []volume{written}, func(_ *testing.T, _ *v1alpha1.PDGroup, s *observation.Snapshot) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-0", Namespace: "ns", OwnerReferences: []metav1.OwnerReference{{UID: "before", Controller: ptr.To(true)}}}}
			s.Instances = append(s.Instances, i)
		}, nil, true, step.KindWait, []string{"Instance basic-pd-0"}, ""},
		"starts no member on a claim that is being deleted": {3, nil, []volume{written, written}, func(_ *testing.T, _ *v1alpha1.PDGroup, s *observation.Snapshot) {
			s.Claims["basic-pd-0"][0].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
		}, []string{"basic-pd-1"}, true, step.KindWait, nil, ""},
		"waits with a minority for a while": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, time.Minute)
		}, nil, true, step.KindWait, []string{"basic-pd-0"}, ""},
		"and says then what is missing": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
		}, nil, true, step.KindStall, []string{"restore claims data-basic-pd-1, data-basic-pd-2", "kubectl -n ns delete pvc data-basic-pd-0 --wait=false, then kubectl -n ns delete pdgroup basic-pd, and create it again, if no TidbCluster does"}, ""},
		"says what keeps its members from a quorum, and not to delete their data": {3, nil, []volume{written, written, written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
			crashes(s, 1, "False")
		}, nil, true, step.KindStall, []string{"Instance basic-pd-1: the log says why; PD has no quorum", "logs basic-pd-0", "lost-quorum.md"}, "delete pvc"},
		"nor if claims are missing as well": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
			crashes(s, 0, "True")
		}, nil, true, step.KindStall, []string{"Instance basic-pd-0: the log says why; PD has no quorum", "restore claims data-basic-pd-1, data-basic-pd-2"}, "delete pvc"},
		"nor if none is missing": {3, nil, []volume{written, written, written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
		}, nil, true, step.KindStall, []string{"kubectl -n ns logs basic-pd-0"}, "delete pvc"},
		"but that an empty cluster may be, whose bootstrap was interrupted": {3, nil, []volume{written, blank, blank}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
		}, nil, true, step.KindStall, []string{"with basic-pd-0, basic-pd-1, basic-pd-2", "if none of these claims was restored", "delete pvc data-basic-pd-0 data-basic-pd-1 data-basic-pd-2"}, ""},
		"nor may one be that lacked claims which were restored since": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			for _, slot := range []int32{1, 2} {
				keeps(s, slot, written)
				s.Claims[names.Instance(g.Name, slot)][0].CreationTimestamp = metav1.NewTime(clock().Add(-time.Minute))
			}
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
		}, nil, true, step.KindStall, []string{"with basic-pd-0, basic-pd-1, basic-pd-2", "lost-quorum.md"}, "delete pvc"},
		"and not that one crashes which joins for lack of a quorum": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			keeps(s, 1, written)
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			runs(s, 3*time.Minute)
			crashes(s, 1, "False")
		}, nil, true, step.KindStall, []string{"restore claims data-basic-pd-2", "delete pvc data-basic-pd-0 data-basic-pd-1"}, "the log says why"},
		"and has taken over one of its initial members starts no others": {3, later, nil, func(t *testing.T, _ *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, stored(), *s), func(n int) (bool, bool) { return n == 0, true })
			runs(s, time.Hour)
		}, nil, true, step.KindStall, []string{"PD has no quorum with basic-pd-0, the members that are left", "restore claims data-basic-pd-1, data-basic-pd-2"}, ""},
		"and has taken over members that join and have no claims says so": {3, nil, nil, func(t *testing.T, _ *v1alpha1.PDGroup, s *observation.Snapshot) {
			keeps(s, 0, written)
			makes(s, mustPlan(t, stored(bootstrapped), *s), func(n int) (bool, bool) { return n == 0, true })
			clear(s.Claims)
			tells(s.Instances[0], time.Minute, "Ready", "True", "Ready")
		}, nil, false, step.KindWait, []string{"Instance basic-pd-0 was configured to join an earlier cluster", "restore them (data-basic-pd-0 and so on)", "kubectl -n ns delete pdgroup basic-pd"}, ""},
		"lets one join whose claim turns up later": {3, nil, []volume{written}, func(t *testing.T, g *v1alpha1.PDGroup, s *observation.Snapshot) {
			makes(s, mustPlan(t, g, *s), func(int) (bool, bool) { return true, true })
			keeps(s, 1, written)
		}, []string{"basic-pd-1"}, false, step.KindWait, nil, ""},
		"and its ID is known starts who has a claim": {5, bootstrapped, []volume{written, none, written}, nil,
			[]string{"basic-pd-0", "basic-pd-2"}, false, step.KindWait, []string{"members that PD lists start again first"}, ""},
		"and its ID is known but no claim is left says so": {3, bootstrapped, nil, nil,
			nil, false, step.KindWait, []string{"restore the claims of its members (data-basic-pd-0", "kubectl -n ns delete pdgroup basic-pd"}, ""},
		"and has taken over members that join bootstraps nothing": {3, nil, []volume{written, written, none}, func(t *testing.T, _ *v1alpha1.PDGroup, s *observation.Snapshot) {
			old := stored(bootstrapped)
			makes(s, mustPlan(t, old, *s), func(n int) (bool, bool) { return n == 0, true })
		}, []string{"basic-pd-1"}, false, step.KindWait, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(replicasOf(c.replicas))
			if c.edit != nil {
				c.edit(g)
			}
			s := unborn(c.volumes...)
			if c.change != nil {
				c.change(t, g, &s)
			}
			p := mustPlan(t, g, s)
			assert.Equal(t, c.creates, created(p))
			assert.Equal(t, c.kind, p.Outcome.Kind, p.Outcome.Message)
			for _, text := range c.says {
				assert.Contains(t, p.Outcome.Message, text)
			}
			if c.unsaid != "" {
				assert.NotContains(t, p.Outcome.Message, c.unsaid)
			}
			for _, change := range p.Instances {
				if change.Live == nil {
					assert.Equal(t, c.bootstraps, strings.HasPrefix(startArg(t, change.Desired), bootstrap.Flag), startArg(t, change.Desired))
				}
			}
			reported(t, g, s, clock())
		})
	}
}

// What a deleted PDGroup leaves is used only if it leaves it.
func TestWhoIsToDeleteThePDGroupForItsClaimsIsToldToKeepThem(t *testing.T) {
	g := stored()
	for slot := range int32(3) {
		g.Status.InitialMembers = append(g.Status.InitialMembers, v1alpha1.PDInitialMember{Name: names.Instance(g.Name, slot), UID: "gone"})
	}
	s := unborn(none, none, none)
	makes(&s, mustPlan(t, stored(), s), func(n int) (bool, bool) { return n == 0, true })
	assert.Contains(t, mustPlan(t, g, s).Outcome.Message, "a second cluster: delete the PDGroup and create it again")
	g.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaim
	p := mustPlan(t, g, s)
	assert.Contains(t, p.Outcome.Message, "a second cluster: set spec.persistentVolumeClaimRetentionPolicy.whenDeleted (kubectl -n ns edit pdgroup basic-pd) to Retain first, which keeps its claims, then delete the PDGroup")
	require.Len(t, p.Instances, 1, "which takes effect meanwhile")
	assert.Equal(t, v1alpha1.DeleteClaim, p.Instances[0].Desired.Spec.ClaimRetention.WhenDeleted)
}

// P5: a group that is created again under its name never takes the ID of the cluster that was
// deleted with the one before: it would wait for that cluster forever.
func TestPD03WhatADeletedGroupsPDSaidLastIsNotRecorded(t *testing.T) {
	g := stored()
	server := pdtest.New(started(t, g, 3).PD)
	r := &steps{Env: operator.Env{PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return server, nil })}}
	key := client.ObjectKeyFromObject(g)
	r.PD.Watch(key, true)
	require.True(t, r.PD.Ask(t.Context(), key).HasQuorum(), "what the former group's PD said last")
	server.Fail(errors.New("connection refused"))

	var s observation.Snapshot
	r.askPD(t.Context(), stored(bootstrapped), &s)
	assert.Equal(t, "73", bootstrap.ClusterID(g, s), "that of a cluster whose ID is recorded is as old as the last poll")
	r.askPD(t.Context(), g, &s)
	assert.Empty(t, bootstrap.ClusterID(g, s))
}
