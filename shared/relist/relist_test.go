package relist

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// P6.
func TestEventsThatAWatchHasLostAreFoundByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		list := make(chan *corev1.PodList, 2)
		pod := func(name string) corev1.Pod { return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
		list <- &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{pod("gone")}}
		watches := make(chan *watch.FakeWatcher, 1)
		informer := Every(50*time.Millisecond)(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				select {
				case l := <-list:
					return l, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil && *options.SendInitialEvents {
					return nil, assert.AnError // this server only lists
				}
				w := watch.NewFake()
				watches <- w
				return w, nil
			},
		}, &corev1.Pod{}, 0, toolscache.Indexers{})
		go informer.RunWithContext(ctx)

		first := <-watches
		seen := pod("seen")
		first.Add(&seen)
		require.Eventually(t, func() bool { return len(informer.GetStore().ListKeys()) == 2 }, 10*time.Second, time.Millisecond)
		// No event tells of these: one pod has come and one has gone.
		list <- &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{seen, pod("lost")}}
		require.Eventually(t, func() bool {
			return assert.ObjectsAreEqual([]string{"lost", "seen"}, slices.Sorted(slices.Values(informer.GetStore().ListKeys())))
		}, 10*time.Second, time.Millisecond)
		require.Eventually(t, first.IsStopped, 10*time.Second, time.Millisecond, "the first watch is not read any more")
	})
}

func TestAWatchThatIsNotDuePassesItsEventsOn(t *testing.T) {
	inner := watch.NewFake()
	outer := expireWatch(inner, time.Hour)
	go inner.Add(&corev1.Pod{})
	assert.Equal(t, watch.Added, (<-outer.ResultChan()).Type)
	go inner.Stop()
	_, open := <-outer.ResultChan()
	assert.False(t, open, "it ends when the API server ends it")
	outer.Stop()
	assert.Nil(t, Every(0))
}
