package polling_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/turns"
)

// fake is a PD whose answers the test decides. The tests run in a bubble in
// which time passes only when everybody waits. A Poller gives no orders.
type fake struct {
	pd.Client
	mu     sync.Mutex
	view   pd.View
	hang   bool
	late   time.Duration
	polls  []time.Duration // since begin
	light  []time.Duration // those of polls that did not ask for the settings
	begin  time.Time
	closed int

	running *concurrency // nil if polls are not counted
}

func (f *fake) View(ctx context.Context) (pd.View, error) {
	f.mu.Lock()
	f.polls = append(f.polls, time.Since(f.begin))
	view, hang, late := f.view, f.hang, f.late
	f.mu.Unlock()
	// The client gives a PD that says nothing up sooner than the poll ends.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if f.running != nil {
		f.running.begin()
		defer f.running.end()
	}
	if late > 0 {
		timer := time.NewTimer(late)
		defer timer.Stop()
		<-timer.C
	}
	if hang {
		<-ctx.Done()
		return pd.View{}, ctx.Err()
	}
	return view, view.Err
}

func (f *fake) Refresh(ctx context.Context, before pd.View) (pd.View, error) {
	f.mu.Lock()
	f.light = append(f.light, time.Since(f.begin))
	f.mu.Unlock()
	v, err := f.View(ctx)
	v, _ = v.WithSettings(before)
	return v, err
}

func (f *fake) RemovedStores(context.Context) ([]string, error) { return nil, nil }

func (f *fake) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
}

func (f *fake) set(view pd.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

// lag has every answer come late.
func (f *fake) lag(late time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = late
}

// stall has no answer come any more, or again.
func (f *fake) stall(hang bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang = hang
}

// take returns when the polls since the last take began.
func (f *fake) take() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	polls := f.polls
	f.polls = nil
	return polls
}

// takeLight returns when those of them began that did not ask for the settings.
func (f *fake) takeLight() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	light := f.light
	f.light = nil
	return light
}

// bench is a running Poller with a fake PD for each name, and what its events
// enqueued.
var basic = types.NamespacedName{Namespace: "default", Name: "basic-pd"}

type bench struct {
	*polling.Poller
	fakes map[types.NamespacedName]*fake
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	stop  func()
}

func newBench(t *testing.T, handlers ...handler.EventHandler) *bench {
	t.Helper()
	b := &bench{fakes: map[types.NamespacedName]*fake{basic: {begin: time.Now()}, other: {begin: time.Now()}}}
	b.Poller = polling.New(func(name types.NamespacedName) (pd.Client, error) {
		f := b.fakes[name]
		if f == nil {
			return nil, errors.New("no such PD")
		}
		return f, nil
	})
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, b.Events(handlers...).Start(ctx, b.queue))
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	synctest.Wait()
	b.stop = func() {
		cancel()
		assert.NoError(t, <-ended)
		b.queue.ShutDown()
	}
	return b
}

var other = types.NamespacedName{Namespace: "default", Name: "other-pd"}

// name is that of one of many PDs.
func name(kind string, at int) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: fmt.Sprint(kind, at)}
}

// pass lets time pass.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// woken drains the queue.
func (b *bench) woken() []string {
	var out []string
	for b.queue.Len() > 0 {
		request, _ := b.queue.Get()
		b.queue.Done(request)
		out = append(out, request.Name)
	}
	return out
}

func seconds(values ...float64) []time.Duration {
	var out []time.Duration
	for _, v := range values {
		out = append(out, time.Duration(v*float64(time.Second)))
	}
	return out
}

func view(leader string) pd.View { return pd.View{Leader: leader} }

func TestASteadyPDIsPolledEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.fakes[basic].set(view("a"))
		_, ok := b.View(basic)
		assert.False(t, ok)
		b.Watch(basic, false)
		pass(25 * time.Second)
		assert.Equal(t, seconds(0, 10, 20), b.fakes[basic].take())
		v, ok := b.View(basic)
		assert.True(t, ok)
		assert.Equal(t, "a", v.Leader)
		assert.Equal(t, []string{"basic-pd"}, b.woken(), "only the first poll found something new")
		pass(60 * time.Second)
		assert.Empty(t, b.woken(), "an idle PD wakes no group")
	})
}

func TestWhileSomethingMovesPollsStartFastAndSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.Watch(basic, true)
		pass(4 * time.Second)
		assert.Equal(t, seconds(0, 0.2, 0.5, 0.95, 1.625, 2.625, 3.625), b.fakes[basic].take())

		b.fakes[basic].set(view("b"))
		pass(1100 * time.Millisecond)
		assert.Equal(t, seconds(4.625, 4.825), b.fakes[basic].take(), "a change makes it fast again")

		b.Watch(basic, false)
		pass(20 * time.Second)
		assert.Equal(t, seconds(5.125, 15.125), b.fakes[basic].take(), "and steady when it no longer moves")
	})
}

func TestAKickPollsSoonAndKicksAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.Watch(basic, false)
		pass(5 * time.Second)
		for range 100 {
			b.Kick(basic)
		}
		pass(0)
		for range 100 {
			b.Kick(basic)
		}
		pass(time.Second)
		assert.Equal(t, seconds(0, 5, 5.1), b.fakes[basic].take())
		b.Kick(other)
		b.Watch(basic, true)
		b.Watch(basic, true)
		pass(0)
		assert.Equal(t, seconds(6), b.fakes[basic].take(), "what begins to move is polled at once")
		assert.Empty(t, b.fakes[other].take(), "it is not watched")
	})
}

func TestAPDThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.fakes[basic].hang = true
		b.Watch(basic, true)
		b.Watch(other, true)
		pass(1100 * time.Millisecond)
		assert.Equal(t, seconds(0), b.fakes[basic].take())
		assert.Equal(t, seconds(0, 0.2, 0.5, 0.95), b.fakes[other].take())
		_, ok := b.View(basic)
		assert.False(t, ok)
		pass(time.Second)
		v, ok := b.View(basic)
		assert.True(t, ok, "the deadline of a poll is two seconds")
		assert.ErrorIs(t, v.Err, context.DeadlineExceeded)
	})
}

func TestManyChangingPDsShareTheLimitOfPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		const moving, steady = 300, 40
		for at := range moving {
			b.fakes[name("moving", at)] = &fake{begin: time.Now()}
		}
		for at := range steady {
			b.fakes[name("steady", at)] = &fake{begin: time.Now()}
		}
		for at := range moving {
			b.Watch(name("moving", at), true)
		}
		for at := range steady {
			b.Watch(name("steady", at), false)
		}
		pass(500 * time.Millisecond)
		for at := range steady {
			assert.Equal(t, seconds(0), b.fakes[name("steady", at)].take(), "who moves takes no turn of who does not")
		}
		b.fakes[name("moving", moving-1)].take() // it may have been among the first
		asked := b.Ask(t.Context(), name("moving", moving-1))
		require.NoError(t, asked.Err)
		assert.Equal(t, seconds(0.5), b.fakes[name("moving", moving-1)].take(), "who is about to act does not wait")

		pass(60*time.Second - 500*time.Millisecond)
		all, least, most := 0, 1000, 0
		for at := range moving {
			n := len(b.fakes[name("moving", at)].take())
			all, least, most = all+n, min(least, n), max(most, n)
		}
		assert.InDelta(t, 50+50*60, all, 50, "fifty in a second, and fifty at once in the beginning")
		assert.LessOrEqual(t, most-least, 2, "each as often as the others")
		for at := range steady {
			assert.Len(t, b.fakes[name("steady", at)].take(), 6, "at 10 s, 20 s … 60 s")
		}
	})
}

func TestConcurrentPollsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		const slow, all = 100, 160
		running := &concurrency{}
		for at := range all {
			b.fakes[name("pd-", at)] = &fake{begin: time.Now(), late: 1900 * time.Millisecond, hang: at >= slow, running: running}
		}
		for at := range all {
			b.Watch(name("pd-", at), true)
		}
		pass(60 * time.Second)
		assert.Equal(t, 2*16, running.peak(), "sixteen that fail beside as many that answer")
		for at := range slow {
			assert.InDelta(t, 5, len(b.fakes[name("pd-", at)].take()), 1, "each as often as the others")
			v, known := b.View(name("pd-", at))
			assert.True(t, known)
			require.NoError(t, v.Err, "the time of waiting is no part of the deadline")
		}
		for at := slow; at < all; at++ {
			v, _ := b.View(name("pd-", at))
			require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		}

		before := time.Now()
		require.NoError(t, b.Ask(t.Context(), name("pd-", 0)).Err)
		assert.Equal(t, 1900*time.Millisecond, time.Since(before), "who is about to act does not wait")
	})
}

// PD waits for members that do not answer, three seconds for each.
func TestPDsThatWaitForTheirMembersDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		const all = 60
		for at := range all {
			b.fakes[name("slow", at)] = &fake{begin: time.Now(), late: 3 * time.Second}
			b.fakes[name("well", at)] = &fake{begin: time.Now()}
		}
		for at := range all {
			b.Watch(name("slow", at), true)
			b.Watch(name("well", at), false)
		}
		pass(30 * time.Second)
		for at := range all {
			b.fakes[name("well", at)].take()
		}
		pass(60 * time.Second)
		for at := range all {
			assert.Len(t, b.fakes[name("well", at)].take(), 6)
			v, _ := b.View(name("slow", at))
			require.NoError(t, v.Err)
		}
	})
}

func TestAKickWhileAPollWaitsMakesNoSecondOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		for at := range 16 {
			b.fakes[name("pd-", at)] = &fake{begin: time.Now(), hang: true}
		}
		for at := range 16 {
			b.Watch(name("pd-", at), false)
		}
		pass(0)
		b.Watch(basic, false)
		pass(time.Second)
		b.Kick(basic)
		pass(9 * time.Second)
		assert.Equal(t, seconds(2), b.fakes[basic].take(), "it waited for a place")
	})
}

// concurrency counts what goes on at the same time.
type concurrency struct {
	mu        sync.Mutex
	now, most int
}

func (c *concurrency) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most = max(c.most, c.now)
}

func (c *concurrency) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

func (c *concurrency) peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// answered watches a PD that answers, and returns it.
func (b *bench) answered() *fake {
	f := b.fakes[basic]
	f.set(view("a"))
	b.Watch(basic, false)
	return f
}

func TestALateAnswerIsPolledAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.answered()
		pass(5 * time.Second)
		b.woken()
		f.stall(true)
		pass(7100 * time.Millisecond)
		f.stall(false)
		pass(2 * time.Second)
		assert.Equal(t, seconds(0, 10, 12.2), f.take(), "it is asked again at once")
		v, _ := b.View(basic)
		assert.Equal(t, "a", v.Leader)
		assert.Empty(t, b.woken())

		f.stall(true)
		pass(12500 * time.Millisecond)
		assert.Equal(t, seconds(22.2, 24.4), f.take())
		v, _ = b.View(basic)
		require.ErrorIs(t, v.Err, context.DeadlineExceeded, "the second one in a row is believed, within 5 s")
		assert.Equal(t, []string{"basic-pd"}, b.woken())
		assert.ErrorIs(t, b.Ask(t.Context(), basic).Err, context.DeadlineExceeded, "who has to know is told at once")
		f.stall(false)
		pass(time.Minute)
		assert.Equal(t, []string{"basic-pd"}, b.woken(), "it is back")
	})
}

func TestAHandoverOfTheLeaderIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.answered()
		pass(9 * time.Second)
		b.woken()
		f.set(pd.View{Err: &pd.Refused{Call: "rules", Status: 500, Body: "redirect to not leader"}})
		pass(1100 * time.Millisecond)
		f.set(view("a"))
		pass(time.Second)
		assert.Equal(t, seconds(0, 10, 10.3), f.take(), "it is asked once more")
		assert.Empty(t, b.woken())

		f.set(pd.View{Err: pd.ErrNoLeader})
		assert.ErrorIs(t, b.Ask(t.Context(), basic).Err, pd.ErrNoLeader, "one that lasts is told")
		assert.Len(t, f.take(), 2)
	})
}

func TestASlowPDIsPolledLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.fakes[basic]
		f.lag(500 * time.Millisecond)
		b.Watch(basic, true)
		for range 90 {
			b.Kick(basic)
			pass(100 * time.Millisecond)
		}
		assert.Equal(t, seconds(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), f.take(), "as long as it took there is no poll, kicked or not")
	})
}

func TestABrokenPDIsPolledLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.answered()
		pass(5 * time.Second)
		f.set(pd.View{Err: errors.New("down")})
		pass(45 * time.Second)
		assert.Equal(t, seconds(0, 10, 11, 13, 17, 25, 35, 45), f.take())
		assert.Equal(t, []string{"basic-pd"}, b.woken())
		pass(6 * time.Second)
		f.take()
		for range 40 {
			b.Kick(basic)
			pass(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, len(f.take()), 5, "an open breaker lets one kick through in a second")
		f.set(view("a"))
		pass(10 * time.Second)
		assert.Equal(t, []string{"basic-pd"}, b.woken(), "it is back")
	})
}

// Two operators of a process that ask for the same PD have it polled once, as often as the
// one that waits needs, until both have released it.
func TestOperatorsOfAProcessSharePolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.fakes[basic]
		asked := func() int {
			pass(time.Minute) // until the pace is what it stays
			f.take()
			pass(time.Minute)
			return len(f.take())
		}
		one, other := b.ForAsker("one"), b.ForAsker("other")
		one.Watch(basic, false)
		rest := asked()
		other.Watch(basic, false)
		assert.Equal(t, rest, asked(), "the same number of questions as one has")
		one.Watch(basic, true)
		moving := asked()
		assert.Greater(t, moving, rest)
		other.Watch(basic, false)
		assert.Equal(t, moving, asked(), "the other one does not slow it down")
		_, known := other.View(basic)
		assert.True(t, known)

		one.Keep(basic.Namespace, nil)
		assert.Equal(t, rest, asked(), "no operator waits any more")
		other.Keep(basic.Namespace, nil)
		assert.Zero(t, asked())
	})
}

func TestForgettingEndsPollsAndDropsTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.fakes[basic]
		b.Watch(basic, true)
		pass(time.Millisecond)
		c, err := b.Client(basic)
		require.NoError(t, err)
		assert.Same(t, f, c)
		b.Keep(basic.Namespace, nil)
		b.Keep(basic.Namespace, nil)
		f.take()
		pass(time.Minute)
		assert.Empty(t, f.take())
		_, ok := b.View(basic)
		assert.False(t, ok)
		assert.Equal(t, 1, f.closed)

		b.woken()
		f.hang = true
		b.Watch(basic, true)
		pass(time.Second)
		b.Keep(basic.Namespace, nil)
		f.stall(false)
		b.Watch(basic, true)
		pass(time.Millisecond)
		v, ok := b.View(basic)
		assert.True(t, ok)
		assert.NoError(t, v.Err, "the poll that was cut off says nothing")
	})
}

func TestAPDWatchedBeforeTheStartIsPolledFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{begin: time.Now()}
		p := polling.New(func(types.NamespacedName) (pd.Client, error) { return f, nil })
		assert.True(t, p.NeedLeaderElection())
		p.Watch(basic, false)
		pass(time.Minute)
		assert.Empty(t, f.take())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		pass(time.Second)
		assert.Equal(t, seconds(60), f.take())
		assert.Error(t, p.Start(ctx), "starting twice is a mistake")
		cancel()
		require.NoError(t, <-ended)
		assert.Equal(t, 1, f.closed)
		p.Watch(other, true)
		pass(time.Minute)
		assert.Empty(t, f.take(), "after the end nothing is polled")
	})
}

func TestTheTimingCanBeChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{begin: time.Now()}
		timing := turns.DefaultTiming()
		timing.Steady = time.Minute
		p := polling.New(func(types.NamespacedName) (pd.Client, error) { return f, nil }, polling.WithTiming(timing))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		p.Watch(basic, false)
		pass(90 * time.Second)
		assert.Equal(t, seconds(0, 60), f.take())
		cancel()
		require.NoError(t, <-ended)
	})
}

// set is what b says with stores, and so many replicas.
func set(leader string, replicas int) pd.View {
	v := view(leader)
	v.ClusterID, v.Bootstrapped, v.MaxReplicas = "1", true, replicas
	return v
}

func TestSettingsAreAskedForRarelyAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.fakes[basic]
		replicas := func() int {
			v, _ := b.View(basic)
			return v.MaxReplicas
		}
		f.set(set("a", 3))
		b.Watch(basic, false)
		pass(5 * time.Second)
		f.set(set("a", 5))
		pass(40 * time.Second)
		assert.Equal(t, 3, replicas())
		assert.Equal(t, seconds(10, 20, 30, 40), f.takeLight())
		pass(10 * time.Second)
		assert.Equal(t, 5, replicas(), "the fifth poll asks again")
		assert.Empty(t, f.takeLight())

		f.set(set("a", 7))
		assert.Equal(t, 7, b.Ask(t.Context(), basic).MaxReplicas, "who is about to act is told all")
		f.set(set("a", 9))
		b.Kick(basic)
		pass(time.Second)
		assert.Equal(t, 9, replicas(), "something was done to PD")
		f.set(set("a", 11))
		pass(5 * time.Second)
		b.Watch(basic, true)
		pass(time.Second)
		assert.Equal(t, 11, replicas(), "a group waits for something")
		b.Watch(basic, false)
		pass(20 * time.Second)
		f.set(set("b", 13))
		pass(10 * time.Second)
		assert.Equal(t, 13, replicas(), "another member leads")
	})
}

func TestAPollDoesNotOverwriteSettingsThatAskHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		f := b.fakes[basic]
		f.set(set("a", 3))
		b.Watch(basic, false)
		pass(9 * time.Second)
		f.lag(time.Second)
		asked := make(chan pd.View, 1)
		go func() {
			pass(500 * time.Millisecond)
			f.set(set("a", 5))
			asked <- b.Ask(t.Context(), basic) // from 9.5 to 10.5 s, and the poll from 10 to 11 s
		}()
		pass(3 * time.Second)
		assert.Equal(t, 5, (<-asked).MaxReplicas)
		v, _ := b.View(basic)
		assert.Equal(t, 5, v.MaxReplicas)
		assert.Equal(t, seconds(10), f.takeLight())
	})
}

func TestAFailureToDialIsAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		unknown := types.NamespacedName{Namespace: "default", Name: "unknown"}
		b.Watch(unknown, false)
		pass(time.Second)
		v, ok := b.View(unknown)
		assert.True(t, ok)
		assert.EqualError(t, v.Err, "no such PD")
		_, err := b.Client(unknown)
		assert.EqualError(t, err, "no such PD")
		c, err := b.Client(other)
		require.NoError(t, err)
		assert.Same(t, b.fakes[other], c)
	})
}

func TestEventsMayWakeOthersThanThePDGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: "group-of-" + o.GetName()}}}
		}))
		defer b.stop()
		late, cancel := context.WithCancel(t.Context())
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		require.NoError(t, b.Events().Start(late, q))
		b.Watch(basic, false)
		pass(time.Second)
		assert.Equal(t, []string{"group-of-basic-pd"}, b.woken())
		assert.Equal(t, 1, q.Len())
		cancel()
		b.fakes[basic].set(view("b"))
		pass(10 * time.Second)
		assert.Equal(t, []string{"group-of-basic-pd"}, b.woken())
		assert.Equal(t, 1, q.Len(), "a controller that has ended is not told")
	})
}

func TestManyCallersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				for n := range 200 {
					b.fakes[basic].set(view(strconv.Itoa(n)))
					b.Watch(basic, n%2 == 0)
					b.Kick(basic)
					b.View(basic)
					if n%50 == i {
						b.Keep(basic.Namespace, nil)
					}
					_, err := b.Client(basic)
					assert.NoError(t, err)
				}
			})
		}
		callers.Wait()
		b.stop()
	})
}

func TestAskReturnsAFreshAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.fakes[basic].set(pd.View{Leader: "a"})
		b.Watch(basic, false)
		synctest.Wait()
		require.Equal(t, []string{"basic-pd"}, b.woken())

		b.fakes[basic].set(pd.View{Leader: "b"})
		assert.Equal(t, "b", b.Ask(t.Context(), basic).Leader)
		view, known := b.View(basic)
		assert.True(t, known)
		assert.Equal(t, "b", view.Leader, "it is the latest from then on")
		assert.Equal(t, []string{"basic-pd"}, b.woken(), "the groups that depend on PD are woken")

		b.fakes[other].set(pd.View{Leader: "c"})
		assert.Equal(t, "c", b.Ask(t.Context(), other).Leader, "a PD that is not watched may be asked")
		_, known = b.View(other)
		assert.False(t, known)
		assert.Equal(t, 1, b.fakes[other].closed)
	})
}

func TestAnAnswerThatComesLateDoesNotReplaceANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.fakes[basic].set(pd.View{Leader: "old"})
		b.fakes[basic].lag(time.Second)
		b.Watch(basic, false)
		synctest.Wait()
		b.fakes[basic].lag(0)
		b.fakes[basic].set(pd.View{Leader: "new"})
		assert.Equal(t, "new", b.Ask(t.Context(), basic).Leader)
		pass(2 * time.Second)
		view, _ := b.View(basic)
		assert.Equal(t, "new", view.Leader)
	})
}
