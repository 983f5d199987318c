package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// clock is a time of whole seconds, as the API keeps it.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// stored is the sample as the API server would return it.
func stored(changes ...func(*v1alpha1.TiDBGroup)) *v1alpha1.TiDBGroup {
	return sample("ns", append([]func(*v1alpha1.TiDBGroup){func(g *v1alpha1.TiDBGroup) {
		g.UID, g.Generation = "group-uid", 2
	}}, changes...)...)
}

// ready makes a group that TiDB waits for say that it is Ready.
func ready(g v1alpha1.Group) {
	g.SetGeneration(1)
	set := conditions.New(nil, 1, clock())
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "it serves")
	g.GetGroupStatus().Conditions = set.List()
}

// open is what is seen when both dependencies are Ready and nothing exists yet.
func open() snapshot {
	pd, tikv := stage.PDGroup(""), stage.TiKVGroup("")
	ready(pd)
	ready(tikv)
	return snapshot{Snapshot: observation.Snapshot{PDGroup: pd, TiKVGroups: []*v1alpha1.TiKVGroup{tikv}}}
}

func mustPlan(t *testing.T, g *v1alpha1.TiDBGroup, s snapshot) groupPlan {
	t.Helper()
	p, err := makePlan(g, s)
	require.NoError(t, err)
	return p
}

// started is what is seen of a group whose servers run.
func started(t *testing.T, g *v1alpha1.TiDBGroup, changes ...func(*snapshot)) snapshot {
	t.Helper()
	s := open()
	p := mustPlan(t, g, s)
	s.Revisions, s.ConfigMaps = []appsv1.ControllerRevision{*p.Revision}, map[string]bool{p.ConfigMap.Name: true}
	for _, c := range p.Instances {
		i := c.Desired
		i.Generation, i.Status.PodUID, i.Status.PodIP, i.Status.NodeName = 1, types.UID("pod-"+i.Name), "10.0.0.1", "n1"
		says(i, true, clock())
		s.Instances = append(s.Instances, i)
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func says(i *v1alpha1.Instance, serves bool, since time.Time) {
	set := conditions.New(nil, i.Generation, since)
	if serves {
		set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the pod runs")
		set.MarkTrue(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodReady, "the pod runs")
	} else {
		set.MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonImagePullFailed, "no such image")
		set.MarkFalse(v1alpha1.ConditionPodReady, v1alpha1.ReasonImagePullFailed, "no such image")
	}
	i.Status.Conditions = set.List()
}

func down(slot int) func(*snapshot) {
	return func(s *snapshot) { says(s.Instances[slot], false, clock()) }
}

// reported plans and reports, and checks the invariants of the status.
func reported(t *testing.T, g *v1alpha1.TiDBGroup, s snapshot) *v1alpha1.TiDBGroup {
	t.Helper()
	status, _ := reportStatus(g, s, mustPlan(t, g, s), step.Done(), clock())
	out := g.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindTiDBGroup}
	out.Status = status
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(raw))
	require.Empty(t, invariants.Check(object))
	return out
}

func TestReport(t *testing.T) {
	closed := func(s *snapshot) { s.PDGroup = nil }
	empty := func(s *snapshot) { s.Instances = nil }
	for name, c := range map[string]struct {
		edit                     func(*v1alpha1.TiDBGroup)
		change                   []func(*snapshot)
		ready, upToDate, depends string
	}{
		"a group that serves":                     {nil, nil, "True/Ready", "True/UpToDate", "True/DependenciesReady"},
		"a group that waits for PD":               {nil, []func(*snapshot){empty, closed}, "False/WaitingForPDGroup", "False/WaitingForPDGroup", "False/WaitingForPDGroup"},
		"a group that waits for TiKV":             {nil, []func(*snapshot){empty, func(s *snapshot) { s.TiKVGroups = nil }}, "False/WaitingForTiKVGroup", "False/WaitingForTiKVGroup", "False/WaitingForTiKVGroup"},
		"a group that serves on without PD":       {nil, []func(*snapshot){closed}, "True/Ready", "True/UpToDate", "False/WaitingForPDGroup"},
		"one server is a service":                 {nil, []func(*snapshot){down(0)}, "True/Ready", "False/ImagePullFailed", "True/DependenciesReady"},
		"no server is none":                       {nil, []func(*snapshot){down(0), down(1)}, "False/ImagePullFailed", "False/ImagePullFailed", "True/DependenciesReady"},
		"bootstrap SQL that is missing":           {nil, []func(*snapshot){empty, func(s *snapshot) { s.BootstrapSQL = "ConfigMap sql does not exist" }}, "False/MissingReference", "False/MissingReference", "True/DependenciesReady"},
		"PD comes before bootstrap SQL":           {nil, []func(*snapshot){empty, closed, func(s *snapshot) { s.BootstrapSQL = "ConfigMap sql does not exist" }}, "False/WaitingForPDGroup", "False/WaitingForPDGroup", "False/WaitingForPDGroup"},
		"an edit that makes no sense":             {func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "=" }, nil, "True/Ready", "False/InvalidSpec", "True/DependenciesReady"},
		"an edit that needs a restart":            {func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "lease = '1s'" }, nil, "True/Ready", "False/Creating", "True/DependenciesReady"},
		"a server that has not seen its new spec": {nil, []func(*snapshot){func(s *snapshot) { s.Instances[0].Generation, s.Instances[1].Generation = 2, 2 }}, "True/Ready", "False/WaitingForInstances", "True/DependenciesReady"},
		"a pause":          {func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }, nil, "True/Ready", "True/UpToDate", "True/DependenciesReady"},
		"a suspension":     {func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true }, nil, "False/Suspended", "False/Suspended", "True/DependenciesReady"},
		"too many servers": {func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(1)) }, nil, "True/Ready", "False/Draining", "True/DependenciesReady"},
		"a group of none":  {func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(0)) }, []func(*snapshot){empty}, "False/NotReady", "True/UpToDate", "True/DependenciesReady"},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored()
			if c.edit != nil {
				c.edit(g)
			}
			out := reported(t, g, started(t, stored(), c.change...))
			assert.Equal(t, c.ready, stage.Verdict(out, v1alpha1.ConditionReady), stage.Dump(out))
			assert.Equal(t, c.upToDate, stage.Verdict(out, v1alpha1.ConditionUpToDate))
			assert.Equal(t, c.depends, stage.Verdict(out, v1alpha1.ConditionDependenciesReady))
		})
	}
}

func TestDB02NoServerIsMadeBeforeItsDependenciesAreReady(t *testing.T) {
	s := open()
	assert.Len(t, mustPlan(t, stored(), s).Instances, 2)
	s.TiKVGroups[0].Generation = 2
	p := mustPlan(t, stored(), s)
	assert.Empty(t, p.Instances, "an answer to an older question is none")
	assert.Len(t, p.Services, 2, "what needs no dependency is made at once")
}

// DB-02: a TiKVGroup that is not whole does not keep a user from adding servers to a database
// that works.
func TestDB02AClusterThatHasServedGetsServersRegardlessOfTiKV(t *testing.T) {
	sick := func() snapshot {
		s := open()
		s.TiKVGroups[0].Status.Conditions, s.PDGroup.Status.Conditions = nil, nil
		return s
	}
	served := func(g *v1alpha1.TiDBGroup) { g.Status.CurrentRevision = "r" }
	assert.Empty(t, mustPlan(t, stored(), sick()).Instances, "the cluster is being made")

	p := mustPlan(t, stored(served), sick())
	assert.Len(t, p.Instances, 2, "this group has served")
	assert.False(t, p.Dependencies.Open, "and says all the same what is not Ready")

	s := sick()
	other := stored(served)
	other.Name = "other"
	s.Groups = []v1alpha1.Group{other}
	assert.Len(t, mustPlan(t, stored(), s).Instances, 2, "another group of the cluster has")

	s = sick()
	s.PDGroup = nil
	assert.Empty(t, mustPlan(t, stored(served), s).Instances, "there is no PD to start with")
}

// docs/tasks/suspend.md: a server that starts before its stores only crashes, again and again.
func TestDB02AResumedClusterStartsItsServersAfterTiKV(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true })
	s.converge()
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = false })
	suspended := func(seen snapshot) (out []bool) {
		p := mustPlan(t, s.own, seen)
		for _, c := range p.Instances {
			out = append(out, c.Desired.Spec.Suspended)
		}
		return out
	}
	seen := open()
	known := s.Snapshot()
	seen.Now, seen.Instances, seen.Revisions, seen.ConfigMaps = known.Now, known.Instances, known.Revisions, known.ConfigMaps
	assert.Equal(t, []bool{false, false}, suspended(seen))
	seen.TiKVGroups[0].Status.Conditions = nil
	assert.Equal(t, []bool{true, true}, suspended(seen))
	assert.Equal(t, v1alpha1.ReasonWaitingForTiKVGroup, mustPlan(t, s.own, seen).Outcome.Reason, "and not that the user has to resume it")
	for _, i := range seen.Instances {
		i.Spec.Suspended = false
	}
	assert.Equal(t, []bool{false, false}, suspended(seen), "those that run are not stopped")
}

func TestDB09MissingSQLIsLookedForAgain(t *testing.T) {
	s := open()
	s.BootstrapSQL = "spec.bootstrapSQL.name: ConfigMap sql does not exist"
	p := mustPlan(t, stored(), s)
	assert.Equal(t, step.RetryAfter(lookAgain, v1alpha1.ReasonMissingReference, s.BootstrapSQL), p.Outcome, "it is not watched")
	assert.Empty(t, p.Instances)
}

func TestDB13NoServerIsMadeOrRestartedWithoutTheKeysOfTokens(t *testing.T) {
	tokens := func(g *v1alpha1.TiDBGroup) { g.Spec.AuthToken = &v1alpha1.AuthToken{SecretName: "keys"} }
	for name, s := range map[string]snapshot{"none is there": open(), "they serve": started(t, stored())} {
		s.Keys.Users.Name = "keys"
		p := mustPlan(t, stored(tokens), s)
		assert.Empty(t, p.Instances, name)
		assert.Equal(t, step.KindStall, p.Outcome.Kind, name)
		assert.Contains(t, p.Outcome.Message, "Secret keys, which spec.authToken needs, does not exist", name)
		s.Keys.Users.Data = map[string][]byte{keyset.Key: []byte(`{"keys": [{"kty": "oct", "kid": "a", "alg": "HS256", "k": "c2VjcmV0"}]}`)}
		assert.NotEmpty(t, mustPlan(t, stored(tokens), s).Instances, name)
	}
	assert.Equal(t, certificate.ReviewAgain, combineOutcomes(stored(tokens), groupPlan{}, step.Done()).After, "who asks for Secrets is woken when they change")
	assert.Zero(t, combineOutcomes(stored(), groupPlan{}, step.Done()).After)
}

func TestDB13TheKeyOfSessionsIsMadeUnlessThereIsOne(t *testing.T) {
	moved := func(g *v1alpha1.TiDBGroup) { g.Spec.SessionToken = &v1alpha1.SessionToken{} }
	mine := func(g *v1alpha1.TiDBGroup) { g.Spec.SessionToken = &v1alpha1.SessionToken{SecretName: "mine"} }
	for name, s := range map[string]snapshot{"none is there": open(), "they serve": started(t, stored())} {
		p := mustPlan(t, stored(moved), s)
		assert.True(t, p.SigningSecret, name)
		assert.NotEmpty(t, p.Instances, name)
		assert.False(t, mustPlan(t, stored(), s).SigningSecret, name)

		s.Keys.Sessions = certificate.Secret{Name: "mine"}
		p = mustPlan(t, stored(mine), s)
		assert.False(t, p.SigningSecret, "%s: a user makes it", name)
		assert.Empty(t, p.Instances, name)
		assert.Contains(t, p.Outcome.Message, "Secret mine, which spec.sessionToken needs, does not exist", name)

		s.Keys.Sessions = certificate.Secret{Name: "basic-session-token-secret", Refused: true}
		p = mustPlan(t, stored(moved), s)
		assert.False(t, p.SigningSecret, "%s: it is unknown what is there", name)
		assert.Empty(t, p.Instances, name)

		s.Keys.Sessions = certificate.Secret{Name: "basic-session-token-secret", Data: map[string][]byte{"tls.crt": []byte("x")}}
		p = mustPlan(t, stored(moved), s)
		assert.False(t, p.SigningSecret, "%s: it may be a user's", name)
		assert.Empty(t, p.Instances, name)
		assert.Contains(t, p.Outcome.Message, "key tls.key: it is missing", name)
	}
	assert.False(t, mustPlan(t, stored(moved, func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }), open()).SigningSecret)
	assert.Equal(t, certificate.ReviewAgain, combineOutcomes(stored(moved), groupPlan{}, step.Done()).After, "who asks for Secrets is woken when they change")
}

func TestDB11OneServerStartsAloneUntilRootHasItsPassword(t *testing.T) {
	generate := func(g *v1alpha1.TiDBGroup) {
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
	}
	g := stored(generate)
	p := mustPlan(t, g, open())
	assert.Len(t, p.Instances, 1)
	assert.True(t, p.RootSecret)
	assert.Contains(t, p.Outcome.Message, "the first server sets the passwords")
	assert.False(t, mustPlan(t, stored(), open()).RootSecret)

	one := func(serves bool) snapshot {
		return started(t, g, func(s *snapshot) {
			s.Instances = s.Instances[:1]
			says(s.Instances[0], serves, clock())
		})
	}
	created := func(p groupPlan) (n int) {
		for _, c := range p.Instances {
			if c.Live == nil {
				n++
			}
		}
		return n
	}
	p = mustPlan(t, g, one(false))
	assert.Zero(t, created(p), "not while the first one starts")
	assert.False(t, p.RootSecret, "it is there before the first Instance is")
	assert.Equal(t, 1, created(mustPlan(t, g, one(true))))
	g.Status.CurrentRevision = "all were there once"
	assert.Equal(t, 1, created(mustPlan(t, g, one(false))), "never again")
	paused := stored(generate, func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true })
	assert.False(t, mustPlan(t, paused, open()).RootSecret)
}

func TestDB19PDMayListTheServersOfTheGroup(t *testing.T) {
	g := stored()
	assert.Equal(t, map[string]bool{"basic-tidb-0": true, "basic-tidb-1": true}, mustPlan(t, g, started(t, g)).Registered)
	assert.Empty(t, mustPlan(t, g, open()).Registered)
	assert.NotNil(t, mustPlan(t, g, open()).Registered, "what a group of the same name has left is looked for")
	for name, s := range map[string]struct {
		group  *v1alpha1.TiDBGroup
		change func(*snapshot)
	}{
		"PD is not Ready":  {g, func(s *snapshot) { s.PDGroup.Status.Conditions = nil }},
		"nothing is to be": {stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }), func(*snapshot) {}},
		"the group leaves": {stored(func(g *v1alpha1.TiDBGroup) { g.DeletionTimestamp = &metav1.Time{Time: clock()} }), func(*snapshot) {}},
	} {
		t.Run(name, func(t *testing.T) { assert.Nil(t, mustPlan(t, s.group, started(t, g, s.change)).Registered) })
	}
}

func TestDB10OneServerStartsAloneUntilTheUsersAreMade(t *testing.T) {
	users := &v1alpha1.InitialUsers{Secret: "people"}
	for name, c := range map[string]struct {
		initialization v1alpha1.Initialization
		secret         bool
	}{
		"root is among them or has no password": {v1alpha1.Initialization{Users: users}, false},
		"root's password is generated":          {v1alpha1.Initialization{Users: users, RootPassword: v1alpha1.RootPasswordGenerate}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Initialization = &c.initialization }), open())
			assert.Len(t, p.Instances, 1)
			assert.Contains(t, p.Outcome.Message, "the first server sets the passwords")
			assert.Equal(t, c.secret, p.RootSecret)
		})
	}
}

func TestDB14LabelsAreSetOncePerPodAndAgainAfterItLostThem(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Replicas = ptr.To(int32(1))
		g.Spec.ServerLabels = map[string]v1alpha1.StoreLabelValue{"rack": "r1"}
	})
	zone := func(s *snapshot) {
		s.Nodes = map[string]map[string]string{"n1": {corev1.LabelTopologyZone: "a"}}
	}
	first := mustPlan(t, g, started(t, g, zone)).Labels
	require.Len(t, first, 1)
	assert.Equal(t, map[string]string{"zone": "a", "rack": "r1"}, first[0].Labels)
	assert.Equal(t, client.ObjectKeyFromObject(g), first[0].Group)
	assert.Equal(t, "basic-tidb-0", first[0].Instance)
	assert.Equal(t, "10.0.0.1", first[0].Host)
	known := func(s *snapshot) {
		zone(s)
		s.Labelled = map[string]labelling.Labelling{first[0].Instance: first[0]}
	}
	for name, c := range map[string]struct {
		edit   func(*v1alpha1.TiDBGroup)
		change func(*snapshot)
		given  bool
	}{
		"not again while nothing changed":        {nil, known, false},
		"again for another pod":                  {nil, func(s *snapshot) { known(s); s.Instances[0].Status.PodUID = "new" }, true},
		"again when the container has restarted": {nil, func(s *snapshot) { known(s); says(s.Instances[0], true, clock().Add(time.Minute)) }, true},
		"again when the node's zone changed": {nil, func(s *snapshot) {
			known(s)
			s.Nodes["n1"][corev1.LabelTopologyZone] = "b"
		}, true},
		"again when the user's labels changed":                                          {func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels["rack"] = "r2" }, known, true},
		"not while the server does not serve":                                           {nil, func(s *snapshot) { zone(s); down(0)(s) }, false},
		"not while the pod has no address":                                              {nil, func(s *snapshot) { zone(s); s.Instances[0].Status.PodIP = "" }, false},
		"not while the Instance is deleted":                                             {nil, func(s *snapshot) { zone(s); s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(clock())) }, false},
		"not while the group is paused":                                                 {func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }, zone, false},
		"not while the group is suspended":                                              {func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true }, zone, false},
		"not while PD is away: TiDB answers 200, and other servers never learn of them": {nil, func(s *snapshot) { zone(s); s.PDGroup.Status.Conditions = nil }, false},
		"also while the edit of a PDGroup that is Ready is not processed":               {nil, func(s *snapshot) { zone(s); s.PDGroup.Generation++ }, true},
		"not when there is no label at all":                                             {func(g *v1alpha1.TiDBGroup) { g.Spec.ServerLabels = nil }, func(*snapshot) {}, false},
		"the user's alone where nodes are unknown":                                      {nil, func(*snapshot) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := g.DeepCopy()
			s := started(t, g, c.change)
			if c.edit != nil {
				c.edit(g)
			}
			assert.Equal(t, c.given, len(mustPlan(t, g, s).Labels) == 1)
		})
	}
}

func TestEndpoint(t *testing.T) {
	balancer := func(g *v1alpha1.TiDBGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: "LoadBalancer", Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306}}}
	}
	service := func(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		s.Status.LoadBalancer.Ingress = ingress
		return s
	}
	for name, c := range map[string]struct {
		edit    func(*v1alpha1.TiDBGroup)
		service *corev1.Service
		want    string
	}{
		"is the Service's name":                       {func(*v1alpha1.TiDBGroup) {}, nil, "basic-tidb.ns.svc:4000"},
		"has the Service's port":                      {balancer, nil, "basic-tidb.ns.svc:3306"},
		"is the balancer's address":                   {balancer, service(corev1.LoadBalancerIngress{IP: "192.0.2.1"}), "192.0.2.1:3306"},
		"is the balancer's IPv6 address":              {balancer, service(corev1.LoadBalancerIngress{IP: "2001:db8::1"}), "[2001:db8::1]:3306"},
		"is the balancer's name":                      {balancer, service(corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{Hostname: "lb.example"}), "lb.example:3306"},
		"is the Service's name until there is either": {balancer, service(), "basic-tidb.ns.svc:3306"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, endpoint(stored(c.edit), c.service))
		})
	}
}

func TestAServerThatDoesNotServeIsReplacedAtOnce(t *testing.T) {
	edit := stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = "v8.5.8" })
	p := mustPlan(t, edit, started(t, stored(), down(1)))
	assert.NotEqual(t, p.Target.Hash, p.Instances[0].Desired.Spec.Revision)
	assert.Equal(t, p.Target.Hash, p.Instances[1].Desired.Spec.Revision)
	assert.Equal(t, v1alpha1.RecreateLostClaim, p.Instances[0].Desired.Spec.ClaimLoss)
}

// endpoint is where clients of a group connect to.
func endpoint(g *v1alpha1.TiDBGroup, service *corev1.Service) string {
	return workload.Endpoint(g, g.Spec.Service, renderPorts()[0], service)
}
