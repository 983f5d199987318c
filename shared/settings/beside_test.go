package settings_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// timeout bounds what a test waits for.
const timeout = time.Minute

// mute is a status port that answers when it is told to.
type mute struct{ speak chan struct{} }

func (m mute) Show(ctx context.Context, _ string) (map[string]any, error) {
	select {
	case <-m.speak:
		return map[string]any{"a": 7.0}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (mute) Take(context.Context, string, map[string]string) (string, error) { return "", nil }

// strays are Instances whose members may run with something else than their files.
func strays(count int) []*v1alpha1.Instance {
	var out []*v1alpha1.Instance
	for n := range count {
		i := &v1alpha1.Instance{}
		i.Name, i.Generation = fmt.Sprintf("db-%d", n), 1
		i.Status.PodUID, i.Status.PodIP, i.Status.MadeFrom = types.UID(i.Name), fmt.Sprintf("10.0.0.%d", n+1), "an-older-one"
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
		out = append(out, i)
	}
	return out
}

// KV-25.
func TestKV25AHundredUnreachableMembersHoldUpNoReconcile(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Name, g.Namespace = "kv", "shop"
	api, instances := mute{speak: make(chan struct{})}, strays(100)
	now := time.Now()
	m := settings.NewMembers(table(), api, settings.RunInBackground(t.Context()), func() time.Time { return now })
	running, pending := m.Observe(g, instances) // comes back, although no member answers
	assert.Empty(t, running)
	assert.True(t, pending, "nothing is made of the rest yet")
	now = now.Add(settings.FirstAnswerTimeout - 1)
	instances = append(instances, strays(101)[100])
	_, pending = m.Observe(g, instances)
	assert.True(t, pending)
	now = now.Add(1)
	_, pending = m.Observe(g, instances)
	assert.False(t, pending, "but not forever, even if others are begun to be asked meanwhile")

	close(api.speak)
	deadline := time.After(timeout)
	for len(running) < len(instances) {
		select {
		case e := <-m.Answers():
			require.Equal(t, "shop/kv", e.Object.GetNamespace()+"/"+e.Object.GetName())
		case <-deadline:
			t.Fatal("they are not heard")
		}
		running, _ = m.Observe(g, instances)
	}
	assert.Equal(t, map[string]string{"a": "7", "b": "0"}, running["db-99"].Values)
}

func TestTheFirstLookOfAnIdleGroupReportsNothing(t *testing.T) {
	p := online(t, config{"a": "1", "fixed": "1"})
	p.edit(func() { p.config = config{"a": "2", "fixed": "1"} })
	p.converge()
	p.restartOperator()
	p.beside = true
	seen := p.Snapshot()
	_, pending := p.members.Observe(p.own, seen.Instances)
	assert.True(t, pending)
	assert.Len(t, p.begun, 2)
	p.wakesByEnding(0)
	_, pending = p.members.Observe(p.own, seen.Instances)
	assert.True(t, pending, "one of them is still being asked")
	assert.Len(t, p.begun, 1, "none is asked twice")
	p.wakesByEnding(0)
	assert.Equal(t, step.KindDone, p.reconcile(p.Snapshot()).Outcome.Kind)
	assert.Empty(t, p.begun, "nothing is asked at rest")
}

func TestAnUnknownConfigurationCausesNoUpdateAndNoRestart(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "2", "b": "9"} })
	p.beside = true
	p.reconcile(p.Snapshot()) // marks
	p.edit(func() { p.config = config{"a": "1"} })
	p.reconcile(p.Snapshot()) // asks
	p.Now = p.Now.Add(settings.FirstAnswerTimeout)
	plan := p.reconcile(p.Snapshot())
	assert.Equal(t, v1alpha1.ReasonConfigPending, plan.Outcome.Reason)
	assert.Contains(t, plan.Outcome.Message, "is being asked")
	assert.Empty(t, plan.ConfigUpdates)
	for _, i := range p.Instances() {
		assert.NotEmpty(t, i.Annotations[v1alpha1.AnnotationAppliedConfig], "what it may have been given is not forgotten")
		assert.Empty(t, i.Spec.StopPod)
	}
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestAnEditRevertedWhileItIsBeingAppliedIsSetBack(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.beside = true
	p.edit(func() { p.config = config{"a": "2"} })
	p.reconcile(p.Snapshot()) // marks
	p.reconcile(p.Snapshot()) // asks
	p.endAll()
	p.reconcile(p.Snapshot()) // gives
	assert.Len(t, p.begun, 2)
	plan := p.reconcile(p.Snapshot())
	assert.Contains(t, plan.Outcome.Message, "is given a")
	assert.Len(t, p.begun, 2, "not twice")

	p.edit(func() { p.config = config{"a": "1"} })
	plan = p.reconcile(p.Snapshot())
	assert.Equal(t, v1alpha1.ReasonConfigPending, plan.Outcome.Reason, "members still show 1, and are about to get 2")
	p.endAll()
	assert.Equal(t, "2", p.processes["10.0.0.1"].values["a"])
	p.converge()
	assert.Empty(t, p.stopped)
}

func TestAnUnreachableMemberIsAskedAgainAndItsErrorStaysTheSame(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "2"} })
	p.converge()
	p.down, p.own.Status.UpdateRevision = true, p.Instances()[0].Spec.Revision
	p.restartOperator()
	p.beside = true
	p.reconcile(p.Snapshot())
	p.endAll()
	first := p.reconcile(p.Snapshot()).Outcome
	assert.Equal(t, v1alpha1.ReasonRequestFailed, first.Reason)
	assert.Contains(t, first.Message, "connection refused")
	assert.Contains(t, first.Message, "kubectl -n shop annotate instance db-0 groups.tidb.dev/restart=")
	assert.Empty(t, p.begun, "not at once")
	p.Now = p.Now.Add(first.After)
	again := p.reconcile(p.Snapshot()).Outcome
	assert.Len(t, p.begun, 2)
	assert.Equal(t, first.Message, again.Message, "while it is being asked")
	assert.Greater(t, again.After, time.Second, "it is not looked at all the time meanwhile")
	assert.False(t, p.wakesByEnding(0), "that it still does not answer is no news")
	p.down = false
	assert.True(t, p.wakesByEnding(0))
	p.Now = p.Now.Add(again.After)
	p.reconcile(p.Snapshot())
	p.endAll()
	assert.Equal(t, step.KindDone, p.reconcile(p.Snapshot()).Outcome.Kind)
}

func TestMembersOfAGroupThatIsGoneAreForgotten(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.edit(func() { p.config = config{"a": "2"} })
	p.converge()
	p.beside = true
	p.reconcile(p.Snapshot())
	assert.Empty(t, p.begun, "what they run with is known")
	p.members.Forget(types.NamespacedName{Namespace: p.own.Namespace, Name: p.own.Name})
	p.reconcile(p.Snapshot())
	assert.Len(t, p.begun, 2, "another group of this name asks its own")
}

func TestAnEditBlockedByAnUnreachableMemberNamesTheWorkaround(t *testing.T) {
	p := online(t, config{"a": "1"})
	p.down = true
	p.edit(func() { p.config = config{"a": "2"} })
	p.steps()
	o := p.reconcile(p.Snapshot()).Outcome
	assert.Contains(t, o.Message, "set spec.configUpdate to Restart: kubectl -n shop edit tidbgroup db")
	p.edit(func() { p.policy = v1alpha1.RestartForConfig })
	p.converge()
	assert.Equal(t, []string{"db-0", "db-1"}, p.stopped, "the way round leads there")
}
