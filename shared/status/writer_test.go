package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/status"
)

// writerFixture is a Writer, what it has sent and what it has told.
type writerFixture struct {
	status.Writer
	told   *events.FakeRecorder
	sent   int
	refuse error
}

func newWriterFixture(t *testing.T, objects ...client.Object) *writerFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	d := &writerFixture{told: events.NewFakeRecorder(10)}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if d.refuse != nil {
				return d.refuse
			}
			d.sent++
			return c.SubResource(sub).Apply(ctx, o, opts...)
		}}).Build()
	d.Writer = status.Writer{Apply: apply.Writer{Client: c, Owner: "pdgroup"}, Recorder: d.told}
	return d
}

// write is Write of what does not wait.
func (d *writerFixture) write(ctx context.Context, g *v1alpha1.PDGroup, after any, transitions ...metav1.Condition) error {
	_, err := d.Write(ctx, g, &g.Status, after, transitions)
	return err
}

// events returns what was told since the last time.
func (d *writerFixture) events() []string {
	var out []string
	for len(d.told.Events) > 0 {
		out = append(out, <-d.told.Events)
	}
	return out
}

func group() *v1alpha1.PDGroup {
	return &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
}

func condition(kind string, is metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: "why", LastTransitionTime: metav1.Now()}
}

func TestOPS02EveryTransitionIsAnEvent(t *testing.T) {
	for name, c := range map[string]struct {
		condition metav1.Condition
		event     string
	}{
		"what goes well":                 {condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready"), "Normal Ready Ready is True: why"},
		"what is on its way":             {condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "Progressing"), "Normal Progressing Ready is False: why"},
		"what a user must fix":           {condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec"), "Warning InvalidSpec Stalled is True: why"},
		"what a user has fixed":          {condition(v1alpha1.ConditionStalled, metav1.ConditionFalse, "Progressing"), "Normal Progressing Stalled is False: why"},
		"a lost quorum":                  {condition(v1alpha1.ConditionQuorumHealthy, metav1.ConditionFalse, v1alpha1.ReasonQuorumLost), "Warning QuorumLost QuorumHealthy is False: why"},
		"reconciling, which is no event": {condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, "Progressing"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := group()
			d := newWriterFixture(t, g)
			after := v1alpha1.PDGroupStatus{ClusterID: "1"}
			require.NoError(t, d.write(t.Context(), g, &after, c.condition))
			var want []string
			if c.event != "" {
				want = []string{c.event}
			}
			assert.Equal(t, want, d.events())
		})
	}
}

func TestAnUnchangedStatusIsNotWrittenAndMakesNoEvent(t *testing.T) {
	g := group()
	d := newWriterFixture(t, g)
	require.NoError(t, d.write(t.Context(), g, g.Status.DeepCopy(), condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready")))
	assert.Zero(t, d.sent)
	assert.Empty(t, d.events())
}

func TestAStatusThatCouldNotBeWrittenMakesNoEvent(t *testing.T) {
	g := group()
	d := newWriterFixture(t, g)
	d.refuse = errors.New("refused")
	err := d.write(t.Context(), g, &v1alpha1.PDGroupStatus{ClusterID: "1"}, condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Ready"))
	require.ErrorIs(t, err, d.refuse)
	assert.Empty(t, d.events())
}

// Only an upgrade of the operator writes a status again for its version's sake.
func TestEveryStatusNamesTheVersionOfItsOperator(t *testing.T) {
	for _, status := range []status.Versioned{
		&v1alpha1.TidbClusterStatus{}, &v1alpha1.PDGroupStatus{}, &v1alpha1.TiKVGroupStatus{}, &v1alpha1.TiDBGroupStatus{}, &v1alpha1.TiFlashGroupStatus{},
	} {
		status.SetOperatorVersion("v0.1.0")
		text, err := json.Marshal(status)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"operatorVersion":"v0.1.0"`, "%T", status)
	}
	g := group()
	d := newWriterFixture(t, g)
	for _, c := range []struct {
		version string
		sent    int
	}{{"v0.1.0", 1}, {"v0.1.0", 1}, {"v0.2.0", 2}, {"v0.2.0", 2}} {
		d.Version = c.version
		require.NoError(t, d.Apply.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		require.NoError(t, d.write(t.Context(), g, &v1alpha1.PDGroupStatus{ClusterID: "1"}))
		require.NoError(t, d.Apply.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		assert.Equal(t, c.version, g.Status.OperatorVersion)
		assert.Equal(t, c.sent, d.sent)
	}
	require.ErrorContains(t, d.write(t.Context(), g, g.Status), "does not say which version")
}

// A removal that is taken back leaves no word of it on the Instance.
func TestAnObsoleteMemberConditionIsRemoved(t *testing.T) {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-0"}}
	d := newWriterFixture(t, i)
	joined, drained := condition(v1alpha1.ConditionJoined, "True", v1alpha1.ReasonMemberJoined), condition(v1alpha1.ConditionDrained, "True", v1alpha1.ReasonMemberLeft)
	write := func(conditions ...metav1.Condition) []metav1.Condition {
		require.NoError(t, d.Apply.Client.Get(t.Context(), client.ObjectKeyFromObject(i), i))
		for n := range conditions {
			if have := meta.FindStatusCondition(i.Status.Conditions, conditions[n].Type); have != nil {
				conditions[n] = *have
			}
		}
		wait, err := d.WriteMember(t.Context(), i, i.Status.Member, conditions)
		require.NoError(t, err)
		assert.Zero(t, wait)
		require.NoError(t, d.Apply.Client.Get(t.Context(), client.ObjectKeyFromObject(i), i))
		return i.Status.Conditions
	}
	assert.Len(t, write(joined, drained), 2)
	assert.Len(t, write(joined), 1)
	sent := d.sent
	write(joined)
	assert.Equal(t, sent, d.sent, "and then nothing is written")
}

// P6: by what is read of it before its member has left, an Instance that was released since would
// say for good that the member stays.
func TestThatAMemberHasLeftIsTakenBackByTheNewestVersionOnly(t *testing.T) {
	drained := condition(v1alpha1.ConditionDrained, "True", v1alpha1.ReasonMemberLeft)
	stays := condition(v1alpha1.ConditionDrained, "False", v1alpha1.ReasonNotDrained)
	for name, said := range map[string][]metav1.Condition{"it stays": {stays}, "nothing is said of it": nil} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-0"}, Status: v1alpha1.InstanceStatus{Conditions: []metav1.Condition{drained}}}
			d := newWriterFixture(t, i)
			require.NoError(t, d.Apply.Client.Get(t.Context(), client.ObjectKeyFromObject(i), i))
			now := i.DeepCopy()
			now.Labels = map[string]string{"a": "b"}
			require.NoError(t, d.Apply.Client.Update(t.Context(), now))
			_, err := d.WriteMember(t.Context(), i, nil, said)
			assert.True(t, apierrors.IsConflict(err), err)
			_, err = d.WriteMember(t.Context(), now, nil, said)
			assert.NoError(t, err)
		})
	}
}

// No operator acts on that a new member does not serve yet: it is written once its pod has had three seconds.
func TestTheStatusOfANewMemberThatDoesNotServeYetIsDelayed(t *testing.T) {
	now := time.Unix(1800000000, 0)
	absent, joined := condition(v1alpha1.ConditionJoined, "False", v1alpha1.ReasonMemberNotListed), condition(v1alpha1.ConditionJoined, "True", v1alpha1.ReasonMemberJoined)
	unhealthy := condition(v1alpha1.ConditionHealthy, "False", v1alpha1.ReasonMemberUnhealthy)
	begin := func(pod types.UID) (*writerFixture, func(c ...metav1.Condition) time.Duration) {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-0", UID: "i"}, Status: v1alpha1.InstanceStatus{PodUID: pod}}
		d := newWriterFixture(t, i)
		d.Words = status.NewWords(func() time.Time { return now }, time.Second)
		return d, func(c ...metav1.Condition) time.Duration {
			wait, err := d.WriteMember(t.Context(), i, nil, c)
			require.NoError(t, err)
			return wait
		}
	}
	d, write := begin("")
	assert.Equal(t, 5*time.Second, write(absent))
	now = now.Add(4 * time.Second)
	assert.Equal(t, time.Second, write(absent))
	now = now.Add(time.Second)
	assert.Zero(t, write(absent))
	assert.Equal(t, 1, d.sent, "a pod that is not made is not waited for indefinitely")

	d, write = begin("pod")
	assert.Equal(t, 3*time.Second, write(absent))
	assert.Equal(t, 3*time.Second, write(joined, unhealthy))
	assert.Zero(t, write(joined))
	assert.Equal(t, 1, d.sent, "that it serves is said at once")

	d, write = begin("pod")
	assert.Zero(t, write(absent, condition(v1alpha1.ConditionDrained, "True", v1alpha1.ReasonMemberLeft)))
	assert.Equal(t, 1, d.sent, "that it has left is said at once")
}

// One Event tells of a start: what turns with Ready, or is up to date for the first time after
// that, makes none. What a user must do is told in any case, and the end of a roll.
func TestAStartIsOneEvent(t *testing.T) {
	made := time.Date(2026, 1, 2, 2, 13, 0, 0, time.UTC)
	after := func(seconds int) metav1.Time { return metav1.NewTime(made.Add(time.Duration(seconds) * time.Second)) }
	ready, updated := condition(v1alpha1.ConditionReady, "True", "Ready"), condition(v1alpha1.ConditionUpToDate, "True", "UpToDate")
	bootstrapped, stalled := condition(v1alpha1.ConditionBootstrapped, "True", "Bootstrapped"), condition(v1alpha1.ConditionStalled, "True", "InvalidSpec")
	for name, c := range map[string]struct {
		// was Ready, and since when not UpToDate.
		was   metav1.ConditionStatus
		since metav1.Time
		turn  []metav1.Condition
		told  int
	}{
		"all at once":                                 {"False", after(1), []metav1.Condition{ready, updated, bootstrapped}, 1},
		"with something for a user":                   {"False", after(1), []metav1.Condition{ready, bootstrapped, stalled}, 2},
		"the rest of a start":                         {"True", after(1), []metav1.Condition{updated}, 0},
		"the end of a roll":                           {"True", after(60), []metav1.Condition{updated}, 1},
		"an object that is up to date and not Ready":  {"False", after(1), []metav1.Condition{updated}, 1},
		"something else that turns later":             {"True", after(1), []metav1.Condition{bootstrapped}, 1},
		"something for a user in the rest of a start": {"True", after(1), []metav1.Condition{updated, stalled}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := group()
			g.CreationTimestamp = metav1.NewTime(made)
			g.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionReady, c.was, "x"), condition(v1alpha1.ConditionUpToDate, "False", "x")}
			g.Status.Conditions[1].LastTransitionTime = c.since
			d := newWriterFixture(t, g)
			require.NoError(t, d.write(t.Context(), g, &v1alpha1.PDGroupStatus{ClusterID: "1"}, c.turn...))
			assert.Len(t, d.events(), c.told)
		})
	}
}

// What the database says of a member's state only people read.
func TestTheStateOfAMemberIsWrittenLater(t *testing.T) {
	now := time.Unix(1800000000, 0)
	joined := condition(v1alpha1.ConditionJoined, "True", v1alpha1.ReasonMemberJoined)
	begin := func(is *v1alpha1.MemberStatus) (*writerFixture, func(state string, c ...metav1.Condition) time.Duration) {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-0", UID: "i"}, Status: v1alpha1.InstanceStatus{PodUID: "pod", Member: is}}
		if is != nil {
			i.Status.Conditions = []metav1.Condition{joined}
		}
		d := newWriterFixture(t, i)
		d.Words = status.NewWords(func() time.Time { return now }, time.Second)
		return d, func(state string, c ...metav1.Condition) time.Duration {
			wait, err := d.WriteMember(t.Context(), i, &v1alpha1.MemberStatus{ID: "1", State: state}, c)
			require.NoError(t, err)
			return wait
		}
	}
	d, write := begin(&v1alpha1.MemberStatus{ID: "1", State: "Follower"})
	assert.Equal(t, 3*time.Second, write("Leader", joined))
	assert.Zero(t, write("Follower", joined), "it is so again")
	assert.Zero(t, d.sent)
	assert.Equal(t, 3*time.Second, write("Leader", joined))
	now = now.Add(3 * time.Second)
	assert.Zero(t, write("Leader", joined))
	assert.Equal(t, 1, d.sent)

	d, write = begin(&v1alpha1.MemberStatus{ID: "2", State: "Follower"})
	assert.Zero(t, write("Leader", joined))
	assert.Equal(t, 1, d.sent, "another ID is no state")

	d, write = begin(&v1alpha1.MemberStatus{ID: "1", State: "Follower"})
	assert.Zero(t, write("Leader", condition(v1alpha1.ConditionJoined, "False", v1alpha1.ReasonMemberNotListed)))
	assert.Equal(t, 1, d.sent, "a condition that turns is no state")

	d, write = begin(nil)
	assert.Equal(t, 3*time.Second, write(v1alpha1.MemberStarting))
	assert.Zero(t, write("Serving"))
	assert.Equal(t, 1, d.sent, "that a server serves is said at once")
}
