package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const (
	// gather is how long a run goes on after a first change, so that labels which are set
	// together are one change.
	gather = time.Second
	// shortest is how long a run lasts at least: each begins with full lists.
	shortest = 10 * time.Second
	// requestTimeout bounds the first list of namespaces, and the write of an Event.
	requestTimeout = 30 * time.Second
)

// ReasonReleased is that of the Event by which an operator says that it acts in a namespace no more.
const ReasonReleased = "ReleasedByShard"

// CheckName says what is wrong with the name of a shard: it is a part of the name of Leases.
func CheckName(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("it must have at most 63 of a-z, 0-9 and -, as in shop-1: it is the value of label %s of namespaces, and part of the leader Lease's name", v1alpha1.LabelShard)
	}
	return nil
}

// Of says which part of which operator runs.
type Of struct {
	// Shard is the name of the shard.
	Shard string
	// Operator is the name of the program.
	Operator string

	// after tells when a time has passed; time.After if nil.
	after func(time.Duration) <-chan time.Time
}

// Serve runs an operator for the namespaces of a shard until the context ends: run returns
// when its context ends, and is called again whenever the namespaces are others.
func (o Of) Serve(ctx context.Context, cfg *rest.Config, run func(context.Context, *Scope) error) error {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "tidb-groups/" + o.Operator
	events, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("run shard %s: %w", o.Shard, err)
	}
	namespaces, err := watchNamespaces(ctx, cfg, o.Shard)
	if err != nil {
		return fmt.Errorf("run shard %s: %w", o.Shard, err)
	}
	return o.serveNamespaces(ctx, events, namespaces, run)
}

// serveNamespaces is Serve once the namespaces are known.
func (o Of) serveNamespaces(ctx context.Context, events kubernetes.Interface, namespaces *namespaces, run func(context.Context, *Scope) error) error {
	for ctx.Err() == nil {
		scope := namespaces.scope(ctx)
		ctrl.Log.Info("runs for the namespaces of its shard", "shard", o.Shard, "namespaces", len(scope.within))
		if err := o.runOnce(ctx, namespaces.changed, func(ctx context.Context) error { return run(ctx, scope) }); err != nil {
			return err
		}
		released := scope.releasedNamespaces()
		scope.close()
		if ctx.Err() == nil {
			o.announce(ctx, events, released)
		}
	}
	return nil
}

// runOnce runs until the namespaces change, and a little longer.
func (o Of) runOnce(ctx context.Context, changed <-chan struct{}, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return o.checkEarlyEnd(ctx, err)
	case <-changed:
	}
	after := time.After
	if o.after != nil {
		after = o.after
	}
	select {
	case err := <-ended:
		return o.checkEarlyEnd(ctx, err)
	case <-after(max(gather, time.Until(began.Add(shortest)))):
		cancel()
		return <-ended
	}
}

// checkEarlyEnd is what a run that has ended by itself means.
func (o Of) checkEarlyEnd(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return errors.New("run shard " + o.Shard + ": the operator has ended")
	}
	return err
}

// announce says in namespaces that have left that nothing is done there any more. Nothing
// depends on it but the user who waits for it.
func (o Of) announce(ctx context.Context, events kubernetes.Interface, namespaces []string) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, name := range namespaces {
		event := o.releasedEvent(name)
		ctrl.Log.Info(event.Note, "namespace", name)
		if _, err := events.EventsV1().Events(name).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			ctrl.Log.Info("could not say so in an Event", "namespace", name, "reason", err.Error())
		}
	}
}

// releasedEvent is the Event of a namespace that has left.
func (o Of) releasedEvent(namespace string) *eventsv1.Event {
	by := "tidb-groups-" + o.Operator
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, GenerateName: "shard-" + o.Shard + "-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: by,
		ReportingInstance:   by + "-" + o.Shard,
		Action:              "Release",
		Reason:              ReasonReleased,
		Type:                corev1.EventTypeNormal,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: namespace},
		Note:                fmt.Sprintf("the %s operator of shard %s no longer acts in this namespace", o.Operator, o.Shard),
	}
}
