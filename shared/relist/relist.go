package relist

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// spread is by how much longer than asked for, at most, a cache waits until it
// lists again, so that not all do at the same time.
const spread = 0.2

// Informer makes the informer of one kind.
type Informer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Every makes informers that list all their objects again every so often. A
// watch goes on from the last version that was seen: an event that was lost on
// the way, of an object that is no longer written, would be missing forever,
// and what waits for it would wait as long. Never for a period of zero.
func Every(period time.Duration) Informer {
	if period <= 0 {
		return nil
	}
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		source := toolscache.ToListerWatcherWithContext(from)
		var due time.Time // of the next list; the reflector makes one request after the other
		listed := func() { due = time.Now().Add(wait.Jitter(period, spread)) }
		return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				listed()
				return source.ListWithContext(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if ptr.Deref(options.SendInitialEvents, false) {
					listed()
				}
				from, err := source.WatchWithContext(ctx, options)
				if err != nil {
					return nil, err
				}
				return expireWatch(from, time.Until(due)), nil
			},
		}, object, resync, indexers)
	}
}

// expiring is a watch that ends, after a while, in the way in which an API server
// ends one that it has no history for: the reader has to list again.
type expiring struct {
	from   watch.Interface
	events chan watch.Event
	stop   context.CancelFunc
}

func expireWatch(from watch.Interface, after time.Duration) watch.Interface {
	ctx, cancel := context.WithCancel(context.Background())
	w := &expiring{from: from, events: make(chan watch.Event), stop: cancel}
	go w.forwardEvents(ctx, after)
	return w
}

// ResultChan implements watch.Interface.
func (w *expiring) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *expiring) Stop() {
	w.stop()
	w.from.Stop()
}

// forwardEvents hands events on until the watch ends, is stopped or has lasted long
// enough.
func (w *expiring) forwardEvents(ctx context.Context, after time.Duration) {
	defer close(w.events)
	due := time.NewTimer(after)
	defer due.Stop()
	for {
		var event watch.Event
		last, open := false, true
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			status := apierrors.NewResourceExpired("it is time to relist everything").ErrStatus
			event, last = watch.Event{Type: watch.Error, Object: &status}, true
		case event, open = <-w.from.ResultChan():
		}
		if !open {
			return
		}
		select {
		case <-ctx.Done():
			return
		case w.events <- event:
		}
		if last {
			return
		}
	}
}
