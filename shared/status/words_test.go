package status_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/status"
)

// starting is the status of a group that starts, with a message.
func starting(message string) v1alpha1.PDGroupStatus {
	return v1alpha1.PDGroupStatus{GroupStatus: v1alpha1.GroupStatus{
		ObservedGeneration: 1, OperatorVersion: "v2", Reason: "Progressing", Message: message, Replicas: 2, ReadyReplicas: 1,
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Progressing", Message: message},
			{Type: v1alpha1.ConditionDependenciesReady, Status: metav1.ConditionFalse, Reason: "WaitingForPDGroup", Message: "it is not Ready"},
		},
	}, Members: []v1alpha1.PDMember{{Name: "a-0"}}}
}

func TestOnlyChangesOfMessagesAreDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *v1alpha1.PDGroupStatus)
		told   []metav1.Condition
		waits  bool
	}{
		"nothing":                   {change: func(*v1alpha1.PDGroupStatus) {}},
		"a message":                 {change: func(s *v1alpha1.PDGroupStatus) { *s = starting("2 of 3") }, waits: true},
		"a reason":                  {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[0].Reason = "PodPending" }, waits: true},
		"how many there are":        {change: func(s *v1alpha1.PDGroupStatus) { s.Replicas, s.Updated, s.UpdatedReplicas = 3, "3/3", 3 }, waits: true},
		"a reason that is told":     {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[0].Reason = "UpdateHeld" }, told: []metav1.Condition{{}}},
		"the status of a condition": {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[0].Status = metav1.ConditionTrue }},
		"another condition": {change: func(s *v1alpha1.PDGroupStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Paused"})
		}},
		"one condition fewer":    {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions = nil }},
		"the generation":         {change: func(s *v1alpha1.PDGroupStatus) { s.ObservedGeneration = 2 }},
		"that of a condition":    {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[0].ObservedGeneration = 2 }},
		"members that are ready": {change: func(s *v1alpha1.PDGroupStatus) { s.ReadyReplicas = 2 }, waits: true},
		"that none is ready":     {change: func(s *v1alpha1.PDGroupStatus) { s.ReadyReplicas = 0 }, waits: true},
		"what it waits for":      {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[1].Status = metav1.ConditionTrue }, waits: true},
		"that it is not known":   {change: func(s *v1alpha1.PDGroupStatus) { s.Conditions[1].Status = metav1.ConditionUnknown }},
		"PD's leader":            {change: func(s *v1alpha1.PDGroupStatus) { s.Leader = "a-0" }, waits: true},
		"that PD calls one well": {change: func(s *v1alpha1.PDGroupStatus) { s.Members = []v1alpha1.PDMember{{Name: "a-0", Healthy: true}} }, waits: true},
		"which members PD lists": {change: func(s *v1alpha1.PDGroupStatus) { s.Members = []v1alpha1.PDMember{{Name: "a-1"}} }},
		"a revision":             {change: func(s *v1alpha1.PDGroupStatus) { s.UpdateRevision = "b" }},
	} {
		g := group()
		g.Status = starting("1 of 3")
		d := newWriterFixture(t, g)
		d.Version, d.Words = "v2", status.NewWords(func() time.Time { return time.Unix(1800000000, 0) }, time.Second)
		after := starting("1 of 3")
		c.change(&after)
		want, differs := after.DeepCopy(), name != "nothing"
		wait, err := d.Write(t.Context(), g, &g.Status, &after, c.told)
		require.NoError(t, err, name)
		assert.Equal(t, c.waits, wait > 0, name)
		assert.Equal(t, differs && !c.waits, d.sent == 1, name)
		assert.Equal(t, *want, after, name)
		assert.Equal(t, starting("1 of 3"), g.Status, name)

		d.Words, d.sent = nil, 0
		wait, err = d.Write(t.Context(), g, &g.Status, &after, c.told)
		require.NoError(t, err, name)
		assert.Zero(t, wait, name)
		assert.Equal(t, differs, d.sent == 1, name)
	}
}

// begun is a status of which all is words, of a pod that was just made or not.
type begun struct {
	v1alpha1.PDGroupStatus
	New bool `json:"-"`
}

func (s *begun) IsPassing() bool { return s.New }

func TestMessagesOfOthersAreDelayedTwiceAsLong(t *testing.T) {
	c := &v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "c"}}
	d := newWriterFixture(t, c)
	d.Words = status.NewWords(func() time.Time { return time.Unix(1800000000, 0) }, time.Second)
	wait, err := d.Write(t.Context(), c, &c.Status, &v1alpha1.TidbClusterStatus{OperatorVersion: d.Version, ClusterID: "1", Endpoint: "a:4000", Message: "it starts"}, nil)
	require.NoError(t, err)
	assert.Equal(t, 2*time.Second, wait)
}

func TestTheRecordOfANewPodIsDelayedTwiceAsLong(t *testing.T) {
	for starting, want := range map[bool]time.Duration{true: 2 * time.Second, false: time.Second} {
		g := group()
		d := newWriterFixture(t, g)
		d.Words = status.NewWords(func() time.Time { return time.Unix(1800000000, 0) }, time.Second)
		wait, err := d.Write(t.Context(), g, &begun{New: starting}, &begun{PDGroupStatus: v1alpha1.PDGroupStatus{GroupStatus: v1alpha1.GroupStatus{OperatorVersion: d.Version, Message: "it was made"}}, New: starting}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, wait)
		assert.Zero(t, d.sent)
	}
}

func TestTheListOfStoresIsDelayedLikeAMessage(t *testing.T) {
	for _, of := range []status.Described{
		&v1alpha1.TiKVGroupStatus{StoreGroupStatus: v1alpha1.StoreGroupStatus{Stores: []v1alpha1.StoreStatus{{ID: "1"}}}},
		&v1alpha1.TiFlashGroupStatus{StoreGroupStatus: v1alpha1.StoreGroupStatus{Stores: []v1alpha1.StoreStatus{{ID: "1"}}}},
	} {
		of.DropWords()
		text, err := json.Marshal(of)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "stores", "%T", of)
	}
}

func TestMessagesAreDelayedByOneSecondHoweverOftenTheyChange(t *testing.T) {
	now := time.Unix(1800000000, 0)
	words := status.NewWords(func() time.Time { return now }, time.Second)
	wait := func(name, message string) time.Duration {
		g := group()
		g.UID, g.Status = types.UID(name), starting("before")
		d := newWriterFixture(t, g)
		d.Version, d.Words = "v2", words
		after := starting(message)
		wait, err := d.Write(t.Context(), g, &g.Status, &after, nil)
		require.NoError(t, err)
		assert.Equal(t, wait == 0 && message != "before", d.sent == 1)
		return wait
	}
	assert.Equal(t, time.Second, wait("a", "1"))
	now = now.Add(600 * time.Millisecond)
	assert.Equal(t, 400*time.Millisecond, wait("a", "2"))
	assert.Equal(t, time.Second, wait("b", "2"), "each object has its own")
	now = now.Add(400 * time.Millisecond)
	assert.Zero(t, wait("a", "3"), "a second is over")
	assert.Equal(t, time.Second, wait("a", "4"), "that was written, and it begins again")
	now = now.Add(time.Second)
	assert.Zero(t, wait("a", "before"), "nothing differs any more")
	assert.Equal(t, time.Second, wait("a", "5"), "so it begins again")
	now = now.Add(time.Hour)
	assert.Equal(t, time.Second, wait("b", "6"), "what was not asked about for long is forgotten")
}
