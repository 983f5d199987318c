package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

const (
	// restTime is for how long nothing is written once a world has come to rest, on a
	// machine that has nothing else to do.
	restTime = 500 * time.Millisecond
	// restTries is how many of them may pass until then: an operator's Events
	// are written some time after what they tell of.
	restTries = 10
)

// idle waits until nothing is written any more, and then for so long that
// nothing is. While the database calls a member something else than before, as it does with one
// of a busy machine whose heartbeat is late, there is something to write, and it is looked again.
func (r *runner) idle(ctx context.Context, d time.Duration) (err error) {
	for range restTries {
		var moved bool
		if moved, err = r.lookIdle(ctx, d); !moved {
			return err
		}
	}
	return err
}

// lookIdle is idle once. moved says that it failed, and that the state of a member was another one then.
func (r *runner) lookIdle(ctx context.Context, d time.Duration) (moved bool, err error) {
	for range restTries {
		written, err := r.written(ctx, machine.StretchWait(restTime))
		if err != nil {
			return false, err
		}
		if written == nil {
			break
		}
	}
	before, err := r.statuses(ctx)
	if err != nil {
		return false, err
	}
	written, err := r.written(ctx, d)
	if written == nil || err != nil {
		return false, err
	}
	after, err := r.statuses(ctx)
	moved = err == nil && !maps.Equal(memberStates(before), memberStates(after))
	return moved, errors.Join(written, err, errors.New(cmp.Diff(before, after)))
}

// memberStates are what the database calls the members, by kind and name of their objects.
func memberStates(statuses map[string]any) map[string]string {
	out := map[string]string{}
	for key, status := range statuses {
		fields, _ := status.(map[string]any)
		if state, _, _ := unstructured.NestedString(fields, "member", "state"); state != "" {
			out[key] = state
		}
	}
	return out
}

// statuses returns the status of every object, by kind and name.
func (r *runner) statuses(ctx context.Context) (map[string]any, error) {
	out := map[string]any{}
	err := r.world.Await(ctx, func(all objects.Set) error {
		for _, key := range all.Keys() {
			out[key.String()] = all.Get(key.Kind, key.Name).DeepCopy().Object["status"]
		}
		return nil
	})
	return out, err
}

// written lets time pass, and says what operators have written in it: that it
// is nothing is what is measured.
func (r *runner) written(ctx context.Context, d time.Duration) (written, err error) {
	before := r.world.Observed()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	after := r.world.Observed()
	var out []error
	for request, n := range after.Requests {
		if more := n - before.Requests[request]; more > 0 && request.Writes() {
			out = append(out, fmt.Errorf("%d × %s while idle", more, request))
		}
	}
	if more := after.Versions - before.Versions; more > 0 {
		out = append(out, fmt.Errorf("%d new versions of objects while idle", more))
	}
	return errors.Join(out...), nil
}
