package group

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/componenttest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// swept is a Component that takes back what PD shows.
type swept struct {
	componenttest.Clean
	view pd.View
}

func (c swept) UndoPreparation(i *v1alpha1.Instance) []component.Call {
	if c.view.EvictsLeaders("1") {
		return []component.Call{{Verb: component.StopEvictingLeaders, Target: "1", Instance: i.Name}}
	}
	return nil
}

// KV-15: the last answer of PD may be older than the last order to it.
func TestAMarkIsRemovedOnlyAfterPDConfirmsThatNothingIsLeft(t *testing.T) {
	begun := pd.View{EvictLeader: []string{"1"}}
	for name, c := range map[string]struct {
		kind string
		now  pd.View
		says bool
	}{
		"nothing is left":       {v1alpha1.KindTiKVGroup, pd.View{}, false},
		"something is":          {v1alpha1.KindTiKVGroup, begun, true},
		"PD does not answer":    {v1alpha1.KindTiKVGroup, pd.View{Err: errors.New("no")}, true},
		"and is not waited for": {v1alpha1.KindPDGroup, pd.View{Err: errors.New("no")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var g v1alpha1.Group = &v1alpha1.TiKVGroup{}
			if c.kind == v1alpha1.KindPDGroup {
				g = &v1alpha1.PDGroup{}
			}
			i := instancetest.Instance(0, "a")
			member.SetAnnotation(i, v1alpha1.AnnotationDisruption, string(member.Restart))
			r := component.Rendering{Component: swept{}, ComponentFor: func(now pd.View) component.Component { return swept{view: now} }}
			var out changes

			change := out.instanceChange(planning.Inputs{Group: g, Rendering: r}, planning.InstanceDiff{Live: i, Kept: instancetest.Instance(0, "a")}, planning.Removal{}, disruption.EmptyResult())

			assert.Empty(t, change.Desired.Annotations[v1alpha1.AnnotationDisruption])
			said := ""
			for _, again := range out.rechecks {
				said += again.Still(c.now).Reason()
			}
			assert.Equal(t, c.says, said != "", said)
		})
	}
}

// P11: a group made again under its name is not what its spec asks for while
// Instances of the former one fill its slots, whether they are leaving already or not.
func TestInstancesOfAFormerGroupBlockANewOne(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "new"}}
	g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(int32(1))
	r := component.Rendering{Component: componenttest.Clean{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
	target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
	require.NoError(t, err)
	for name, leaves := range map[string]bool{"that stays for now": false, "that leaves": true} {
		t.Run(name, func(t *testing.T) {
			former, err := component.NewInstance(g, r, target, 0)
			require.NoError(t, err)
			former.OwnerReferences[0].UID = "old"
			former.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			if leaves {
				instancetest.MarkDeleted(former)
			}

			plan, err := MakePlan(g, observation.Snapshot{Instances: []*v1alpha1.Instance{former}}, r)

			require.NoError(t, err)
			assert.Equal(t, step.KindWait, plan.Outcome.Kind)
			assert.Equal(t, v1alpha1.ReasonDeleting, plan.Outcome.Reason)
			assert.Contains(t, plan.Outcome.Message, "kv-0")
			assert.Empty(t, plan.Instances)
		})
	}
}

// P11: in a Kubernetes with IPv6 first, the status port of a store, which the kubelet asks, stays at
// IPv4 by default. What is written in Go takes both.
func TestAStoreThatItsKubeletAsksByIPv6NamesTheSetting(t *testing.T) {
	kv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "u"}}
	kv.Spec.PDGroup.Name, kv.Spec.Replicas = "pd", ptr.To(int32(1))
	db := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "u"}}
	db.Spec.PDGroup.Name, db.Spec.Replicas = "pd", ptr.To(int32(1))
	prefers := kv.DeepCopy()
	prefers.Spec.PreferIPv6 = true
	const starts = "the container is not ready yet"
	for name, c := range map[string]struct {
		group      v1alpha1.Group
		ip, reason string
		want       string
	}{
		"a store by IPv6":     {kv, "fd00::5", v1alpha1.ReasonPodNotReady, "Instance kv-0: its pod has the IPv6 address fd00::5, and its status port listens at IPv4 addresses only: set spec.preferIPv6 to true: kubectl -n ns edit tikvgroup kv"},
		"a store by IPv4":     {kv, "10.0.0.5", v1alpha1.ReasonPodNotReady, "Instance kv-0: " + starts},
		"without an address":  {kv, "", v1alpha1.ReasonPodNotReady, "Instance kv-0: " + starts},
		"another reason":      {kv, "fd00::5", v1alpha1.ReasonContainerCrashing, "Instance kv-0: " + starts},
		"one that prefers it": {prefers, "fd00::5", v1alpha1.ReasonPodNotReady, "Instance kv-0: " + starts},
		"what is no store":    {db, "fd00::5", v1alpha1.ReasonPodNotReady, "Instance db-0: " + starts},
	} {
		t.Run(name, func(t *testing.T) {
			r := component.Rendering{Component: componenttest.Clean{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
			target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
			require.NoError(t, err)
			i, err := component.NewInstance(c.group, r, target, 0)
			require.NoError(t, err)
			i.Status.PodUID, i.Status.PodIP = "p", c.ip
			i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: c.reason, Message: starts}}

			plan, err := MakePlan(c.group, observation.Snapshot{Instances: []*v1alpha1.Instance{i}}, r)

			require.NoError(t, err)
			assert.Equal(t, c.reason, plan.Outcome.Reason)
			assert.Equal(t, c.want, plan.Outcome.Message)
		})
	}
}

// unreporting removes members without a word of how far it is.
type unreporting struct{ componenttest.Clean }

func (unreporting) NeedsLease(component.Disruption) bool { return false }

func (unreporting) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Wait: step.Done()}
}

// P9: a group is not what its spec asks for while a member that is being deleted is missing
// in it, even if its removal says nothing.
func TestAGroupIsNotUpToDateWithoutAMemberThatIsBeingDeleted(t *testing.T) {
	r := component.Rendering{Component: unreporting{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
	for name, c := range map[string]struct {
		instances int32
		outcome   step.Kind
	}{
		"it is missing":           {2, step.KindWait},
		"there are enough others": {3, step.KindDone},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "u"}}
			g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(int32(2))
			target, err := rollout.ResolveTarget(observation.Snapshot{}, r)
			require.NoError(t, err)
			var s observation.Snapshot
			for slot := range c.instances {
				i, err := component.NewInstance(g, r, target, slot)
				require.NoError(t, err)
				i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
				s.Instances = append(s.Instances, i)
			}
			instancetest.MarkDeleted(s.Instances[0]).Finalizers = []string{v1alpha1.FinalizerMember}

			plan, err := MakePlan(g, s, r)

			require.NoError(t, err)
			assert.Equal(t, c.outcome, plan.Outcome.Kind, plan.Outcome.Message)
			if c.outcome == step.KindWait {
				assert.Equal(t, v1alpha1.ReasonDeleting, plan.Outcome.Reason)
				assert.Contains(t, plan.Outcome.Message, "kv-0")
			}
		})
	}
}

// A member that lets certain common names connect alone would not let one that still shows its
// former certificate.
func TestSEC01NoMemberIsRestartedRightAfterASecretHasChanged(t *testing.T) {
	now := time.Now()
	ca, err := pki.New(now)
	require.NoError(t, err)
	secret := func(names ...string) certificate.Secret {
		data, err := ca.Secret(pki.Leaf{Names: names})
		require.NoError(t, err)
		return certificate.Secret{Name: "s", Data: data, Written: now.Add(-time.Hour)}
	}
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", Namespace: "ns"}}
	pd.Spec.TLS = &v1alpha1.PDTLS{}
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "u"}}
	g.Spec.PDGroup.Name, g.Spec.Replicas, g.Spec.TLS = "pd", ptr.To(int32(1)), &v1alpha1.TLS{AllowedCommonNames: []string{"test"}}
	r := component.Rendering{Component: componenttest.Clean{}, Gate: gate.Result{Open: true}, RollGate: gate.Result{Open: true}}
	s := observation.Snapshot{Now: now, PDGroup: pd, Certificates: certificate.Secrets{Member: secret("kv-peer.ns.svc", "*.kv-peer.ns.svc"), Client: secret()}}
	made := func() planning.Plan {
		p, err := MakePlan(g, s, r)
		require.NoError(t, err)
		return p
	}
	s.Certificates.Client.Written = now
	assert.NotEmpty(t, made().Instances, "none shows a former one where none is")
	i := instancetest.Instance(0, "kv-0")
	i.Spec.PodTemplate.Raw = []byte("{}")
	s.Instances = []*v1alpha1.Instance{i}
	held := made()
	assert.Equal(t, v1alpha1.ReasonRestartPending, held.Outcome.Reason)
	assert.Contains(t, held.Outcome.Message, "Secret s has just changed")
	assert.Positive(t, held.Outcome.After)
	assert.Empty(t, held.Instances)
	s.Certificates.Client.Written = now.Add(-time.Hour)
	hash := made().Target.Hash
	assert.NotEmpty(t, hash)
	s.Certificates.Client.Written, g.Status.CurrentRevision = now, hash
	assert.Equal(t, hash, made().Target.Hash, "renewals hold nothing back")
}

// Only what is deleted in the foreground, as Argo CD does, is seen while it goes.
func TestADeletedGroupNamesWhatItsInstancesWaitFor(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv", DeletionTimestamp: ptr.To(metav1.Now())}}
	s := observation.Snapshot{Instances: []*v1alpha1.Instance{instancetest.MarkDeleted(instancetest.Instance(0, "a")), instancetest.MarkDeleted(instancetest.Instance(1, "b"))}}
	plan, err := MakePlan(g, s, component.Rendering{})
	require.NoError(t, err)
	assert.Equal(t, "2 Instances are still being deleted", plan.Outcome.Message)
	s.Instances[1].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Message: "pod b is being stopped"}}
	plan, err = MakePlan(g, s, component.Rendering{})
	require.NoError(t, err)
	assert.Equal(t, "2 Instances are still being deleted: Instance "+s.Instances[1].Name+": pod b is being stopped", plan.Outcome.Message)
}

// On a node that does not answer it may stay for good.
func TestAnInstanceThatIsRecreatedIsDescribedByACommand(t *testing.T) {
	o := member.AwaitRecreation(&v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-0"}})
	assert.Equal(t, "Instance db-0 is being deleted and will be recreated when it is gone: kubectl -n ns describe instance db-0", o.Message)
}
