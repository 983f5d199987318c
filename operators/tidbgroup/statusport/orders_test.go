package statusport_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const timeout = time.Minute

// answer waits for the answer to a group's order.
func answer(t *testing.T, o *statusport.Orders, group types.NamespacedName) statusport.Answer {
	t.Helper()
	select {
	case e := <-o.Answers():
		assert.Equal(t, group.Name, e.Object.GetName())
		assert.Equal(t, group.Namespace, e.Object.GetNamespace())
	case <-time.After(timeout):
		t.Fatal("no answer")
	}
	return o.Last(group)
}

func TestDB08OneServerThatAcceptsTheOrderIsEnough(t *testing.T) {
	group := types.NamespacedName{Namespace: "ns", Name: "g"}
	var asked []string
	o := statusport.NewOrders(func(ctx context.Context, host string, verb statusport.Verb) error {
		_, bounded := ctx.Deadline()
		assert.True(t, bounded)
		asked = append(asked, host)
		if host == "good" {
			return nil
		}
		return errors.New(host + " is not there")
	}, time.Now)
	assert.Zero(t, o.Last(group))

	order := statusport.Order{Group: group, Verb: statusport.Start, About: "one", Hosts: []string{"bad", "good", "third"}}
	o.Give(t.Context(), order)
	last := answer(t, o, group)
	require.NoError(t, last.Err)
	assert.True(t, last.Done && last.IsFor(statusport.Start, "one"))
	assert.False(t, last.IsFor(statusport.Finish, "one") || last.IsFor(statusport.Start, "another"))
	assert.Equal(t, []string{"bad", "good"}, asked)

	order.Hosts = []string{"bad", "worse"}
	o.Give(t.Context(), order)
	require.EqualError(t, answer(t, o, group).Err, "bad is not there")
}

func TestDB08AnotherServerIsAskedWhenOneDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := types.NamespacedName{Namespace: "ns", Name: "g"}
		o := statusport.NewOrders(func(ctx context.Context, host string, _ statusport.Verb) error {
			if host != "unreachable" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, time.Now)
		begun := time.Now()
		o.Give(t.Context(), statusport.Order{Group: group, Verb: statusport.Start, Hosts: []string{"unreachable", "unreachable", "good"}})
		<-o.Answers()
		require.NoError(t, o.Last(group).Err)
		o.Give(t.Context(), statusport.Order{Group: group, Verb: statusport.Start, Hosts: []string{"unreachable", "unreachable", "unreachable"}})
		<-o.Answers()
		require.ErrorIs(t, o.Last(group).Err, context.DeadlineExceeded)
		assert.Less(t, time.Since(begun), time.Minute)
	})
}

func TestDB08AnOrderUnderWayIsNotGivenTwice(t *testing.T) {
	group := types.NamespacedName{Namespace: "ns", Name: "g"}
	var calls atomic.Int32
	release := make(chan struct{})
	o := statusport.NewOrders(func(context.Context, string, statusport.Verb) error {
		calls.Add(1)
		<-release
		return nil
	}, time.Now)
	order := statusport.Order{Group: group, Verb: statusport.Start, Hosts: []string{"a"}}
	o.Give(t.Context(), order)
	o.Give(t.Context(), order)
	assert.False(t, o.Last(group).Done)
	close(release)
	assert.True(t, answer(t, o, group).Done)
	assert.EqualValues(t, 1, calls.Load())
}

func TestDB08OrdersOfAGroupThatIsGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := types.NamespacedName{Namespace: "ns", Name: "g"}
		o := statusport.NewOrders(func(context.Context, string, statusport.Verb) error {
			<-time.After(time.Second)
			return nil
		}, time.Now)
		order := statusport.Order{Group: group, Verb: statusport.Start, Hosts: []string{"a"}}
		o.Give(t.Context(), order)
		<-o.Answers()
		assert.True(t, o.Last(group).Done)
		o.Forget(group)
		assert.Zero(t, o.Last(group))

		o.Give(t.Context(), order)
		o.Forget(group)
		<-o.Answers()
		assert.Zero(t, o.Last(group), "it was gone before the answer came")
	})
}

func TestDB08WhatIsOwedComesBackOnceWhenTheGroupIsForgotten(t *testing.T) {
	group := types.NamespacedName{Namespace: "ns", Name: "g"}
	o := statusport.NewOrders(func(context.Context, string, statusport.Verb) error { return nil }, time.Now)
	order := &statusport.Order{Group: group, Verb: statusport.Finish, Hosts: []string{"a"}}
	o.Owe(group, order)
	assert.Equal(t, order, o.Forget(group))
	assert.Nil(t, o.Forget(group))
	o.Owe(group, order)
	o.Owe(group, nil)
	assert.Nil(t, o.Forget(group), "the upgrade is over")
}

func TestDB08TheStatusPortIsAskedAsTiDBWantsIt(t *testing.T) {
	status := http.StatusOK
	var path string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`"It's a duplicated operation and the cluster is already in upgrading state."`))
	})
	server, host := loopback.NewServer(t, 10080, handler)
	server.Start()
	require.NoError(t, statusport.PostUpgrade(t.Context(), host, statusport.Finish), "what it knows already is no error")
	assert.Equal(t, "POST /upgrade/finish", path)
	status = http.StatusBadRequest
	require.ErrorContains(t, statusport.PostUpgrade(t.Context(), host, statusport.Start), "400 Bad Request: \"It's a duplicated")
}
