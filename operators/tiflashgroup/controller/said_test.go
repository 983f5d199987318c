package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// voice is what the stores of all stages say on their status ports: Running, unless a
// test has them say something else.
type voice struct {
	mu     sync.Mutex
	states map[types.NamespacedName]string
	// until are the pods that still serve whatever their store is to say.
	until map[types.NamespacedName]types.UID
	asked map[types.NamespacedName]int
}

var voices = &voice{states: map[types.NamespacedName]string{}, until: map[types.NamespacedName]types.UID{}, asked: map[types.NamespacedName]int{}}

// ask is a statusports.Ask. A store whose state is "mute" does not answer.
func (v *voice) ask(ctx context.Context, host string) (string, error) {
	var list v1alpha1.InstanceList
	if err := rig.Client.List(ctx, &list); err != nil {
		return "", err
	}
	at := slices.IndexFunc(list.Items, func(i v1alpha1.Instance) bool { return i.Status.PodIP == host })
	if at < 0 {
		return "", errors.New("no pod has the address")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := client.ObjectKeyFromObject(&list.Items[at])
	v.asked[key]++
	switch state, told := v.states[key]; {
	case !told, v.until[key] == list.Items[at].Status.PodUID:
		return statusport.Running, nil
	case state == "mute":
		return "", errors.New("no answer in time")
	default:
		return state, nil
	}
}

// say has a store say something from now on.
func (v *voice) say(key types.NamespacedName, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.states[key] = state
}

// sayNext has the store of an Instance say something from its next pod on.
func (v *voice) sayNext(i v1alpha1.Instance, state string) {
	v.mu.Lock()
	v.until[client.ObjectKeyFromObject(&i)] = i.Status.PodUID
	v.mu.Unlock()
	v.say(client.ObjectKeyFromObject(&i), state)
}

// count is how often the stores of a namespace were asked.
func (v *voice) count(namespace string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, times := range v.asked {
		if key.Namespace == namespace {
			n += times
		}
	}
	return n
}

// FL-06: PD says Up of the restarted store all the time, and the next one is stopped
// when it says Running itself.
func TestFL06TheNextStoreIsStoppedWhenTheOneBeforeSaysRunning(t *testing.T) {
	t.Parallel()
	s, g := running(t, 2)
	s.RequireNoWrites(time.Second)
	before := voices.count(s.Namespace)
	s.RequireNoWrites(2 * time.Second)
	assert.Equal(t, before, voices.count(s.Namespace), "no store is asked at rest")

	first := s.Key("basic-tiflash-0")
	s.ChangeStore(first.Name, func(store *pd.Store) { store.Regions = 5 })
	voices.sayNext(s.Instance(first.Name), "Idle")
	s.Edit(g, func() { g.Spec.ProxyConfig = "log-level = \"debug\"" })
	s.WaitForMessage(g, v1alpha1.ReasonRecovering, fmt.Sprintf("store %s of Instance basic-tiflash-0 says \"Idle\" after its restart, and others wait until it says Running: kubectl -n %s logs basic-tiflash-0 ", s.StoreID(first.Name), s.Namespace))
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.RequireNoWrites(3 * time.Second)
	assert.Equal(t, []string{"basic-tiflash-0"}, s.StoppedInstances())
	assert.NotEmpty(t, s.Holder())

	voices.say(first, "mute")
	s.WaitForMessage(g, v1alpha1.ReasonRecovering, "does not say whether it serves after its restart, and PD's report is accepted 1m0s after its pod became ready (no answer in time): kubectl -n ")
	assert.Equal(t, []string{"basic-tiflash-0"}, s.StoppedInstances())

	voices.say(first, statusport.Running)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"basic-tiflash-0", "basic-tiflash-1"}, s.StoppedInstances())
	s.AtRest()
}

// FL-06, KV-14: a store that never gets so far is no reason to wait forever: it may be
// restarted again.
func TestFL06AStoreThatNeverRunsCanBeRestarted(t *testing.T) {
	t.Parallel()
	s, g := running(t, 2)
	for _, i := range s.Instances() {
		s.ChangeStore(i.Name, func(store *pd.Store) { store.Regions = 5 })
		voices.sayNext(i, "Ready")
	}
	s.Edit(g, func() { g.Spec.ProxyConfig = "log-level = \"debug\"" })
	s.WaitForMessage(g, v1alpha1.ReasonRecovering, "basic-tiflash-0 says \"Ready\" after its restart")
	s.Edit(g, func() { g.Spec.ProxyConfig = "" })
	require.Eventually(t, func() bool { return slices.Equal(s.StoppedInstances(), []string{"basic-tiflash-0", "basic-tiflash-0"}) }, machine.StretchWait(stage.Timeout), stage.Tick)
	voices.say(s.Key("basic-tiflash-0"), statusport.Running)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Len(t, s.StoppedInstances(), 2, "the other one was not touched")
	s.AtRest()
}

// FL-06: no store is stopped while another one says that it does not serve.
func TestFL06NoStoreIsStoppedBesideOneThatDoesNotServe(t *testing.T) {
	t.Parallel()
	s, g := running(t, 2)
	for _, i := range s.Instances() {
		s.ChangeStore(i.Name, func(store *pd.Store) { store.Regions = 5 })
	}
	voices.say(s.Key("basic-tiflash-1"), "Stopping")
	s.Edit(g, func() { g.Spec.ProxyConfig = "log-level = \"debug\"" })
	// The one that does not serve is restarted first, although it is not its turn.
	s.WaitForMessage(g, v1alpha1.ReasonRecovering, "basic-tiflash-1 says \"Stopping\" after its restart")
	assert.Equal(t, []string{"basic-tiflash-1"}, s.StoppedInstances())
	voices.say(s.Key("basic-tiflash-1"), statusport.Running)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"basic-tiflash-1", "basic-tiflash-0"}, s.StoppedInstances())
	s.AtRest()
}

func TestFL06TheAnswerOfAStoreDecidesWhetherItServes(t *testing.T) {
	g := sample()
	at := func(name string) member.StatusPortAnswer {
		return member.StatusPortAnswer{Pod: types.UID("pod-" + name), Since: metav1.NewTime(now()), State: statusport.Running}
	}
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		// idle names what keeps the first one from being stopped, recovers what it is
		// waited for after it was.
		idle, recovers string
	}{
		"both serve":            {nil, "", ""},
		"it is about to serve":  {func(s *observation.Snapshot) { say(s, 0, "Idle") }, "", `says "Idle" after its restart`},
		"the other one is":      {func(s *observation.Snapshot) { say(s, 1, "Terminated") }, `Instance basic-tiflash-1 says "Terminated" and not Running: kubectl -n shop logs basic-tiflash-1 `, ""},
		"both are":              {func(s *observation.Snapshot) { say(s, 0, "Idle"); say(s, 1, "Idle") }, "", `says "Idle"`},
		"a version without":     {func(s *observation.Snapshot) { say(s, 0, "") }, "", ""},
		"the other is without":  {func(s *observation.Snapshot) { say(s, 1, "") }, "", ""},
		"the other has no data": {func(s *observation.Snapshot) { say(s, 1, "Idle"); s.PD.Stores[1].Regions = 0 }, "", ""},
		"PD has only just begun": {func(s *observation.Snapshot) {
			say(s, 1, "Idle")
			s.PD.Stores[0].Regions, s.PD.Stores[1].Regions = 0, 0
		}, "Instance basic-tiflash-1 says", ""},
		"it was another process": {func(s *observation.Snapshot) {
			old := s.StatusPorts["basic-tiflash-0"]
			old.Pod = "former"
			s.StatusPorts["basic-tiflash-0"] = old
		}, "", "is being asked"},
		"another start of it": {func(s *observation.Snapshot) {
			old := s.StatusPorts["basic-tiflash-0"]
			old.Since = metav1.NewTime(now().Add(-time.Second))
			s.StatusPorts["basic-tiflash-0"] = old
		}, "", "is being asked"},
		"it was not asked":                       {func(s *observation.Snapshot) { s.StatusPorts = nil; s.Now = now().Add(time.Hour) }, "", "is being asked"},
		"it does not answer":                     {func(s *observation.Snapshot) { unanswered(s) }, "", "is accepted 1m0s after its pod became ready (no answer in time): kubectl -n shop logs basic-tiflash-0 "},
		"it does not answer, and the other idle": {func(s *observation.Snapshot) { unanswered(s); say(s, 1, "Idle") }, "Instance basic-tiflash-1 says", "no answer in time"},
		"it never answers":                       {func(s *observation.Snapshot) { unanswered(s); s.Now = now().Add(statusPortTimeout) }, "", ""},
		"it is idle forever":                     {func(s *observation.Snapshot) { say(s, 0, "Idle"); s.Now = now().Add(time.Hour) }, "", `says "Idle"`},
		"it is leaving":                          {func(s *observation.Snapshot) { say(s, 0, "Idle"); s.PD.Stores[0].State = pd.StateOffline }, "", ""},
		"PD does not know it":                    {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, "", "is Disconnected after its restart"},
		"one of another group": {func(s *observation.Snapshot) {
			other := s.Instances[1].DeepCopy()
			other.Name, other.Status.PodUID, other.Status.Member.ID = "other-0", "pod-other-0", "9"
			s.Siblings = []*v1alpha1.Instance{other}
			s.PD.Stores = append(s.PD.Stores, columns("9", "other-0", "other", pd.StateUp))
			said := at("other-0")
			said.State = "Ready"
			s.StatusPorts["other-0"] = said
		}, `Instance other-0 says "Ready"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t, g, 2)
			s.StatusPorts = map[string]member.StatusPortAnswer{}
			for n, i := range s.Instances {
				i.Status.PodIP = fmt.Sprintf("10.0.0.%d", n+1)
				s.PD.Stores[n].Regions = 7
				s.StatusPorts[i.Name] = at(i.Name)
			}
			if c.change != nil {
				c.change(&s)
			}
			members := storesOf(g, s)
			reason := members.othersServe(s.Instances[0]).Reason()
			assert.Contains(t, reason, c.idle)
			assert.Equal(t, c.idle == "", reason == "", reason)
			p := members.Recover(s.Instances[0], lease.State{})
			assert.Equal(t, c.recovers == "", p.Ready, p.Wait.Message)
			assert.Contains(t, p.Wait.Message, c.recovers)
			if !p.Ready {
				assert.Equal(t, step.KindWait, p.Wait.Kind)
				assert.Equal(t, v1alpha1.ReasonRecovering, p.Wait.Reason)
				assert.Positive(t, p.Wait.After)
			}
		})
	}
}

// say has the store of a slot have said something.
func say(s *observation.Snapshot, slot int, state string) {
	name := s.Instances[slot].Name
	said := s.StatusPorts[name]
	said.State = state
	s.StatusPorts[name] = said
}

// unanswered has the store of the first slot not have answered.
func unanswered(s *observation.Snapshot) {
	said := s.StatusPorts["basic-tiflash-0"]
	said.State, said.Err = "", errors.New("no answer in time")
	s.StatusPorts["basic-tiflash-0"] = said
}
