package question

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// unread is how many answers may wait to be read by the controller.
const unread = 64

// Queue bounds how many members of all groups are called at the same time: those that do not
// answer must not hold up the others for long.
type Queue struct {
	slots   chan struct{}
	answers chan event.GenericEvent
}

// NewQueue returns a Queue of which so many calls run at once.
func NewQueue(atOnce int) *Queue {
	return &Queue{slots: make(chan struct{}, atOnce), answers: make(chan event.GenericEvent, unread)}
}

// Answers reports which groups have news. A controller reads it.
func (q *Queue) Answers() <-chan event.GenericEvent { return q.answers }

// Run calls a member when it is its turn, and reports the group if call returns that there is
// news. It returns when that is done, or ctx ends.
func (q *Queue) Run(ctx context.Context, group types.NamespacedName, call func(ctx context.Context) (news bool)) {
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-q.slots }()
	if !call(ctx) {
		return
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: group.Name}}
	select {
	case q.answers <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}
