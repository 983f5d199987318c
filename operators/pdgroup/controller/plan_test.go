package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// created returns the names of the Instances that a plan creates.
func created(p groupPlan) []string {
	var out []string
	for _, c := range p.Instances {
		if c.Live == nil {
			out = append(out, c.Desired.Name)
		}
	}
	return out
}

func startArg(t *testing.T, i *v1alpha1.Instance) string {
	t.Helper()
	template := stage.Template(t, *i)
	for _, arg := range template.Spec.Containers[0].Args {
		if arg == bootstrap.Reference {
			return template.Annotations[v1alpha1.AnnotationStart]
		}
		if strings.HasPrefix(arg, bootstrap.JoinFlag) || strings.HasPrefix(arg, bootstrap.Flag) {
			return arg
		}
	}
	return ""
}

func TestPD01TheFirstGenerationBootstrapsTogether(t *testing.T) {
	g := stored()
	p := mustPlan(t, g, observation.Snapshot{PD: pd.View{Err: errNoMembers}})
	assert.Equal(t, []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"}, created(p))
	for _, c := range p.Instances {
		assert.Equal(t, "--initial-cluster=basic-pd-0=http://basic-pd-0.basic-pd-peer.ns.svc:2380,"+
			"basic-pd-1=http://basic-pd-1.basic-pd-peer.ns.svc:2380,basic-pd-2=http://basic-pd-2.basic-pd-peer.ns.svc:2380", startArg(t, c.Desired))
		assert.Equal(t, v1alpha1.HoldOnClaimLoss, c.Desired.Spec.ClaimLoss, "a member that forgot its data must not found again")
		assert.Equal(t, []string{"Joined", "Healthy"}, c.Desired.Spec.ReadinessGates)
	}
	// An initial member that is gone before there is a cluster bootstraps again.
	s := started(t, g, 3, pdUnreachable)
	s.Instances = s.Instances[1:]
	p = mustPlan(t, g, s)
	assert.Equal(t, []string{"basic-pd-0"}, created(p))
	assert.Contains(t, startArg(t, p.Instances[len(p.Instances)-1].Desired), "--initial-cluster=")
}

func TestPD02OnceThereIsAClusterEveryMemberJoins(t *testing.T) {
	for name, g := range map[string]*v1alpha1.PDGroup{
		"when PD answers with a quorum":     stored(),
		"when the cluster ID was recorded":  stored(bootstrapped),
		"when a restart is pending as well": stored(bootstrapped, func(g *v1alpha1.PDGroup) { g.Spec.Config = "lease = 5" }),
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, stored(), 3)
			p := mustPlan(t, g, s)
			assert.Equal(t, "73", p.ClusterID)
			require.Len(t, p.Instances, 3)
			for _, c := range p.Instances {
				assert.Equal(t, "--join=http://basic-pd.ns.svc:2379", startArg(t, c.Desired))
				assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.Revision, "joining makes no revision")
			}
		})
	}
}

func TestALabelThatComesWithTheClusterNeedsNoRestart(t *testing.T) {
	g := stored(bootstrapped, func(g *v1alpha1.PDGroup) { g.Spec.Labels = map[string]string{"team": "blue"} })
	p := mustPlan(t, g, started(t, stored(), 3))
	for _, c := range p.Instances {
		assert.Equal(t, p.Target.Hash, c.Desired.Spec.Revision)
		assert.Equal(t, "blue", stage.Template(t, *c.Desired).Labels["team"])
	}
	assert.Contains(t, strings.Join(p.Notes, "\n"), "change Instance basic-pd-0 in place: metadata.labels.team: none → blue")
}

func TestPD03NoSecondClusterIsEverBootstrapped(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		stalls bool
	}{
		"when every member is gone":             {func(s *observation.Snapshot) { s.Instances, s.PD = nil, pd.View{Err: errNoMembers} }, false},
		"when PD does not answer":               {pdUnreachable, false},
		"when PD lost its quorum":               {func(s *observation.Snapshot) { s.PD.Leader = "" }, false},
		"when PD answers with another ID":       {func(s *observation.Snapshot) { s.PD.ClusterID = "999" }, true},
		"when PD answers without any ID at all": {func(s *observation.Snapshot) { s.PD.ClusterID = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(bootstrapped, replicasOf(5))
			s := started(t, stored(), 3)
			for _, joined := range mustPlan(t, stored(bootstrapped), s).Instances {
				joined.Live.Spec = joined.Desired.Spec
			}
			c.change(&s)
			p := mustPlan(t, g, s)
			assert.Equal(t, "73", p.ClusterID)
			for _, c := range p.Instances {
				assert.Contains(t, startArg(t, c.Desired), "--join=")
			}
			assert.Equal(t, c.stalls, p.Outcome.Kind == step.KindStall)
			if c.stalls {
				assert.Empty(t, created(p), "no member joins a PD that is not ours")
				assert.Contains(t, p.Outcome.Message, "999")
			}
		})
	}
	t.Run("an ID without a quorum is not recorded", func(t *testing.T) {
		s := started(t, stored(), 3, func(s *observation.Snapshot) { s.PD.Leader = "" })
		assert.Empty(t, mustPlan(t, stored(), s).ClusterID)
	})
}

func TestPD05MembersJoinOneAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		create []string
		says   string
	}{
		"one when all are ready":        {func(*observation.Snapshot) {}, []string{"basic-pd-3"}, "creating 2 of 5 Instances: members join one at a time"},
		"none while one is not ready":   {unready(1), nil, "Instance basic-pd-1"},
		"none while PD has no quorum":   {func(s *observation.Snapshot) { s.PD.Leader = "" }, nil, "waiting for PD to have a quorum"},
		"none while PD does not answer": {pdUnreachable, nil, "waiting for PD to have a quorum"},
		"none while another PD answers": {func(s *observation.Snapshot) { s.PD.ClusterID = "999" }, nil, "999"},
		"the lowest slot that is free": {func(s *observation.Snapshot) {
			s.Instances, s.PD.Members, s.PD.Leader = s.Instances[1:], s.PD.Members[1:], "basic-pd-1"
		}, []string{"basic-pd-0"}, "creating 3 of 5"},
		"first one that PD counts on and whose data is there": {func(s *observation.Snapshot) {
			s.Instances, s.Claims = s.Instances[:2], map[string][]metav1.ObjectMeta{"basic-pd-2": {{Name: "data-basic-pd-2"}}}
			s.PD.Members[2].Healthy = false
		}, []string{"basic-pd-2"}, "members that PD lists start again first"},
		"none while PD lists one that is not started again": {func(s *observation.Snapshot) {
			s.Instances, s.PD.Members[2].Healthy = s.Instances[:2], false
		}, nil, "waiting for member basic-pd-2, which has no Instance, to leave PD"},
		"none while one has been added and has not started": {func(s *observation.Snapshot) {
			s.PD.Members[2] = pd.Member{ID: "3", PeerURL: "http://basic-pd-2.basic-pd-peer.ns.svc:2380"}
		}, nil, "waiting for Instance basic-pd-2"},
		"none while one is not healthy, for etcd refuses it": {func(s *observation.Snapshot) {
			tells(s.Instances[1], time.Minute, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
			s.PD.Members[1].Healthy = false
		}, nil, "basic-pd-1"},
		"none while one that has no Instance is not healthy": {func(s *observation.Snapshot) {
			s.PD.Members = append(s.PD.Members, pd.Member{Name: "elsewhere", ID: "9", ClientURL: "http://elsewhere"})
		}, nil, "waiting for member elsewhere, which is not healthy"},
		"none until all have been healthy for as long as etcd asks": {func(s *observation.Snapshot) {
			tells(s.Instances[2], 6*time.Second, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
		}, nil, "waiting for member basic-pd-2 to have been healthy for 7s"},
		"none until a process that was started again has run for as long": {func(s *observation.Snapshot) {
			tells(s.Instances[2], time.Hour, "PodReady", "True", "PodReady", "Ready", "True", "Ready", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
			meta.FindStatusCondition(s.Instances[2].Status.Conditions, "PodReady").LastTransitionTime = metav1.NewTime(clock().Add(-6 * time.Second))
		}, nil, "waiting for member basic-pd-2 to have been healthy for 7s"},
		"one when they have": {func(s *observation.Snapshot) {
			tells(s.Instances[2], 7*time.Second, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
		}, []string{"basic-pd-3"}, "members join one at a time"},
		// P5: that one never is Ready again, and a deleted one waits for its replacement.
		"one while a member only loses its claim": {func(s *observation.Snapshot) {
			s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
			tells(s.Instances[0], time.Hour, "Ready", "False", "Deleting", "PodReady", "True", "PodReady", "VolumesReady", "False", "ClaimTerminating", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
		}, []string{"basic-pd-3"}, "members join one at a time"},
		"none while a deletion is underway": {func(s *observation.Snapshot) {
			s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
			unready(0)(s)
		}, nil, "waiting for member basic-pd-0 to leave PD"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, stored(bootstrapped, replicasOf(5)), started(t, stored(), 3, c.change))
			assert.Equal(t, c.create, created(p))
			assert.Contains(t, p.Outcome.Message, c.says)
		})
	}
}

// P1: a member that is released and joins after all votes, and never runs: a single one has no majority
// beside it. So its pod stops first.
func TestP1AMemberThatMayStillJoinIsStoppedBeforeItIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		change            func(*v1alpha1.Instance)
		suspends, drained bool
	}{
		"one whose pod is about to be made": {func(i *v1alpha1.Instance) { i.Status.PodUID, i.Status.Conditions = "", nil }, true, false},
		"one whose pod runs":                {func(i *v1alpha1.Instance) {}, true, false},
		"one that has stopped": {func(i *v1alpha1.Instance) {
			i.Spec.Suspended, i.Status.PodUID, i.Status.ObservedGeneration = true, "", i.Generation
		}, true, true},
		"but one whose claim goes never stops": {func(*v1alpha1.Instance) {}, true, true},
		"one that had joined":                  {func(i *v1alpha1.Instance) { i.Status.Member = &v1alpha1.MemberStatus{ID: "2"} }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, 2, func(s *observation.Snapshot) {
				s.PD.Members = s.PD.Members[:1]
				deleted(s, 1, 0)
				i := s.Instances[1]
				i.Status.Member = nil
				tells(i, time.Minute, "Ready", "False", "PodNotReady", "PodReady", "False", "PodNotReady")
				c.change(i)
			})
			if strings.Contains(name, "claim") {
				s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-1": {{Name: "data-basic-pd-1", DeletionTimestamp: s.Instances[1].DeletionTimestamp}}}
			}
			p := mustPlan(t, stored(bootstrapped, replicasOf(1)), s)
			assert.Equal(t, c.drained, p.Drained["basic-pd-1"])
			for _, change := range p.Instances {
				assert.Equal(t, c.suspends && change.Desired.Name == "basic-pd-1", change.Desired.Spec.Suspended, change.Desired.Name)
			}
		})
	}
}

// P3: an Instance that was made again on the data of a member, and has not started since, is that
// member: its claim is retired, or deleted, once PD has let it go.
func TestP3TheDataOfAMemberIsKeptUntilPDHasLetItGo(t *testing.T) {
	for name, outage := range map[string]func(*observation.Snapshot){"PD does not answer": pdUnreachable, "PD lists it": func(*observation.Snapshot) {}} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, 3, outage, func(s *observation.Snapshot) {
				deleted(s, 2, 0)
				s.Instances[2].Spec.Suspended = true
				s.Instances[2].Status = v1alpha1.InstanceStatus{ObservedGeneration: s.Instances[2].Generation}
				s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-2": {{Name: "data-basic-pd-2"}}}
				if s.PD.Err == nil {
					s.PD.Members[2].Healthy = false
				}
			})
			p := mustPlan(t, stored(bootstrapped), s)
			assert.False(t, p.Drained["basic-pd-2"])
			assert.False(t, p.Released["basic-pd-2"])
			assert.Equal(t, s.PD.Err == nil, len(p.Calls) == 1)
		})
	}
}

// A group that waits for etcd to take another member in is looked at again by then.
func TestPD05TheWaitForEtcdEndsByItself(t *testing.T) {
	s := started(t, stored(), 3, func(s *observation.Snapshot) {
		tells(s.Instances[2], 2*time.Second, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
	})
	p := mustPlan(t, stored(bootstrapped, replicasOf(5)), s)
	assert.Empty(t, created(p))
	assert.Equal(t, step.KindWait, p.Outcome.Kind)
	assert.Equal(t, 6*time.Second, p.Outcome.After)
	// One alone is connected to all there are.
	s = started(t, stored(), 1, func(s *observation.Snapshot) {
		tells(s.Instances[0], 0, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Healthy", "True", "MemberHealthy")
	})
	assert.Equal(t, []string{"basic-pd-1"}, created(mustPlan(t, stored(bootstrapped, replicasOf(3)), s)))
}

func TestConditionsUnderWhichAPlanChangesNothing(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd"}}
	going := foreign.DeepCopy()
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.NewTime(clock())), []string{"service.kubernetes.io/load-balancer-cleanup"}
	for name, c := range map[string]struct {
		edit   func(*v1alpha1.PDGroup)
		change func(*observation.Snapshot)
		kind   step.Kind
		reason string
		says   string
	}{
		"a deletion":                        {func(g *v1alpha1.PDGroup) { g.DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }, nil, step.KindWait, "Deleting", "3 Instances are still being deleted"},
		"a pause":                           {func(g *v1alpha1.PDGroup) { g.Spec.Paused = true }, nil, step.KindWait, "Paused", "set spec.paused to false"},
		"invalid TOML":                      {func(g *v1alpha1.PDGroup) { g.Spec.Config = "a = [" }, nil, step.KindStall, "InvalidSpec", "spec.config: not valid TOML at line 1"},
		"a Service of a group that is gone": {nil, func(s *observation.Snapshot) { s.Services = map[string]*corev1.Service{"basic-pd": going} }, step.KindWait, "Deleting", "Service basic-pd of another owner is being deleted, and waits for service.kubernetes.io/load-balancer-cleanup"},
		"a foreign Service":                 {nil, func(s *observation.Snapshot) { s.Services = map[string]*corev1.Service{"basic-pd": foreign} }, step.KindStall, "NameConflict", "Service basic-pd exists and belongs to another owner"},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(bootstrapped, replicasOf(5))
			if c.edit != nil {
				c.edit(g)
			}
			s := started(t, stored(), 3)
			if c.change != nil {
				c.change(&s)
			}
			p := mustPlan(t, g, s)
			assert.Equal(t, c.kind, p.Outcome.Kind)
			assert.Equal(t, c.reason, p.Outcome.Reason)
			assert.Contains(t, p.Outcome.Message, c.says)
			assert.Empty(t, p.Services)
			assert.Nil(t, p.ConfigMap)
			assert.Nil(t, p.Revision)
			assert.Empty(t, p.Instances)
		})
	}
}

func TestASuspendedGroupStopsEveryPodAndCreatesNone(t *testing.T) {
	g := stored(bootstrapped, replicasOf(5), func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true })
	p := mustPlan(t, g, started(t, stored(), 3))
	assert.Empty(t, created(p))
	for _, c := range p.Instances {
		assert.True(t, c.Desired.Spec.Suspended)
	}
	assert.Contains(t, p.Outcome.Message, "pod basic-pd-0 is still stopping")
	p = mustPlan(t, g, started(t, stored(), 3, func(s *observation.Snapshot) {
		for _, i := range s.Instances {
			i.Status.PodUID = ""
		}
	}))
	assert.Equal(t, step.KindDone, p.Outcome.Kind)
}

func TestAnUpgradedOperatorChangesNoPodAndSaysSo(t *testing.T) {
	g := stored(bootstrapped)
	s := started(t, stored(), 3)
	var record map[string]any
	require.NoError(t, json.Unmarshal(s.Revisions[0].Data.Raw, &record))
	text := strings.Replace(string(s.Revisions[0].Data.Raw), "--data-dir=/var/lib/pd", "--data-dir=/old", 1)
	s.Revisions[0].Data.Raw = []byte(text)
	before := mustPlan(t, g, s)
	for _, i := range s.Instances {
		i.Spec.Revision = before.Target.Hash
		i.Spec.PodTemplate.Raw = []byte(strings.Replace(string(i.Spec.PodTemplate.Raw), "--data-dir=/var/lib/pd", "--data-dir=/old", 1))
	}
	p := mustPlan(t, g, s)
	assert.Equal(t, v1alpha1.ReasonNewRendering, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "--data-dir=/old → --data-dir=/var/lib/pd")
	for _, c := range p.Instances {
		assert.Contains(t, string(c.Desired.Spec.PodTemplate.Raw), "--data-dir=/old")
	}
	assert.Nil(t, p.Revision)
}

func TestNothingIsLeftToDoForAGroupThatHasArrived(t *testing.T) {
	p := mustPlan(t, stored(bootstrapped), started(t, stored(), 3))
	assert.Equal(t, step.Done(), p.Outcome)
	assert.Empty(t, created(p))
	assert.Nil(t, p.ConfigMap)
	assert.Nil(t, p.Revision)
}

func TestAnInitialMemberThatNeverRanKeepsItsInitialCluster(t *testing.T) {
	for name, change := range map[string]func(*observation.Snapshot){
		"when PD lists it without URLs": func(s *observation.Snapshot) { s.PD.Members[1].ClientURL = "" },
		"when PD does not answer":       pdUnreachable,
	} {
		t.Run(name, func(t *testing.T) {
			s := started(t, stored(), 3, change)
			p := mustPlan(t, stored(bootstrapped, replicasOf(5)), s)
			arg := startArg(t, p.Instances[1].Desired)
			assert.Contains(t, arg, "--initial-cluster=")
			assert.NotContains(t, arg, "basic-pd-4")
		})
	}
}

// S M7, P2: the pod of an initial member lives on when there is a cluster, and its disk may be
// wiped under it. What it starts with then is --join, without a restart for it.
func TestP2AnInitialMemberJoinsOnceThereIsACluster(t *testing.T) {
	g := stored()
	p := mustPlan(t, g, observation.Snapshot{PD: pd.View{Err: errNoMembers}})
	for _, c := range p.Instances {
		before := stage.Template(t, *c.Desired)
		assert.Contains(t, before.Annotations[v1alpha1.AnnotationStart], bootstrap.Flag)
		assert.NotContains(t, strings.Join(before.Spec.Containers[0].Args, " "), bootstrap.Flag, "an argument would stay as long as the pod")
	}
	s := started(t, stored(bootstrapped), 3)
	p = mustPlan(t, stored(bootstrapped), s)
	require.Len(t, p.Instances, 3)
	for _, c := range p.Instances {
		before, after := stage.Template(t, *c.Live), stage.Template(t, *c.Desired)
		assert.Equal(t, "--join=http://basic-pd.ns.svc:2379", after.Annotations[v1alpha1.AnnotationStart])
		assert.Equal(t, before.Spec, after.Spec, "nothing but the annotation changes, and no pod is recreated for it")
		assert.Equal(t, c.Live.Spec.Revision, c.Desired.Spec.Revision)
	}
	// So it stays, also while PD does not answer; who comes later has it as an argument.
	for i, c := range p.Instances {
		s.Instances[i] = c.Desired
	}
	for name, change := range map[string]func(*observation.Snapshot){"PD answers": func(*observation.Snapshot) {}, "PD does not answer": pdUnreachable} {
		change(&s)
		for _, c := range mustPlan(t, stored(bootstrapped, replicasOf(4)), s).Instances {
			template := stage.Template(t, *c.Desired)
			assert.Equal(t, c.Desired.Name != "basic-pd-3", template.Annotations[v1alpha1.AnnotationStart] != "", "%s: %s", name, c.Desired.Name)
			assert.True(t, strings.HasPrefix(startArg(t, c.Desired), bootstrap.JoinFlag), "%s: %s", name, c.Desired.Name)
		}
	}
}

// The pod of an initial member that an earlier version made has the argument itself.
func TestAnInitialMemberOfAnEarlierVersionIsLeftAsItIs(t *testing.T) {
	literal := func(i *v1alpha1.Instance) {
		template := stage.Template(t, *i)
		start := template.Annotations[v1alpha1.AnnotationStart]
		delete(template.Annotations, v1alpha1.AnnotationStart)
		c := &template.Spec.Containers[0]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == bootstrap.Variable })
		c.Args[slices.Index(c.Args, bootstrap.Reference)] = start
		raw, err := json.Marshal(template)
		require.NoError(t, err)
		i.Spec.PodTemplate.Raw = raw
	}
	s := started(t, stored(), 3, pdUnreachable)
	for _, i := range s.Instances {
		literal(i)
	}
	for _, c := range mustPlan(t, stored(), s).Instances {
		assert.Equal(t, stage.Template(t, *c.Live), stage.Template(t, *c.Desired), "nothing changes while it bootstraps")
	}
	s.PD = started(t, stored(), 3).PD
	for _, c := range mustPlan(t, stored(bootstrapped), s).Instances {
		assert.Empty(t, stage.Template(t, *c.Desired).Annotations[v1alpha1.AnnotationStart])
		assert.True(t, strings.HasPrefix(startArg(t, c.Desired), bootstrap.JoinFlag))
	}
}
