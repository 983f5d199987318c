package rig

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/resign"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/handover"
)

// hookPoll is how often the hooks of pods ask PD, whose time runs faster here.
const hookPoll = 10 * time.Millisecond

// handing is the preStop hook of a pod that runs.
type handing struct {
	// until is when the grace period is over.
	until time.Time
	done  chan struct{}
}

// program is a program that a hook calls, with its arguments.
type program func(ctx context.Context, args []string) error

// hookRunner returns what runs the hooks of a pod that has these programs, by name; what else a
// hook calls does nothing.
func hookRunner(programs map[string]program) func(context.Context, *corev1.LifecycleHandler) error {
	return func(ctx context.Context, handler *corev1.LifecycleHandler) error {
		if handler == nil || handler.Exec == nil {
			return nil
		}
		args := handler.Exec.Command
		if run := programs[filepath.Base(args[0])]; run != nil {
			return run(ctx, args[1:])
		}
		return nil
	}
}

// faster is how long a hook's time is here.
func (a *actor) faster(d time.Duration) time.Duration {
	return a.delays.seconds(int64(d / time.Second))
}

// podVariables are those that hooks of a pod have.
func podVariables(pod *corev1.Pod) func(name string) string {
	return func(name string) string {
		return map[string]string{"POD_NAME": pod.Name, "NAMESPACE": pod.Namespace}[name]
	}
}

// hook returns what runs the hooks of a pod of PD or TiKV: the programs' own code, which
// asks the simulated PD. That of TiKV writes its record beside the data on the claim.
func (a *actor) hook(pod *corev1.Pod, db *Database, claim types.UID) func(context.Context, *corev1.LifecycleHandler) error {
	env := podVariables(pod)
	return hookRunner(map[string]program{
		"handover": func(ctx context.Context, args []string) error {
			command, err := handover.Parse(args, env)
			if err != nil {
				return err
			}
			command.Job.PD, command.Job.Poll = db.URL(), hookPoll
			if command.Job.TLS, err = a.files(ctx, pod, command.Job.TLS, db.serviceName()); err != nil {
				return err
			}
			command.Job.Record = filepath.Join(a.records, string(claim)+"-"+strings.TrimPrefix(filepath.Base(command.Job.Record), "."))
			command.Within = a.faster(command.Within)
			return command.Run(ctx, nil)
		},
		"resign": func(ctx context.Context, args []string) error {
			command, err := resign.Parse(args, env)
			if err != nil {
				return err
			}
			command.Job.PD, command.Job.Poll = db.URL(), hookPoll
			if command.Job.TLS, err = a.files(ctx, pod, command.Job.TLS, db.serviceName()); err != nil {
				return err
			}
			command.Within = a.faster(command.Within)
			return command.Run(ctx, nil)
		},
	})
}

// handOver runs the preStop hook of a pod, and says for how long it may go on:
// as long as it runs, and no longer than the grace period. That it fails is told by
// an Event, and keeps nothing from going on.
func (a *actor) handOver(pod *corev1.Pod, grace time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	running := a.processes[client.ObjectKeyFromObject(pod)]
	if running == nil || running.handover == nil || preStopExec(pod) == nil {
		return 0
	}
	h := a.handovers[pod.UID]
	if h == nil {
		h = &handing{until: time.Now().Add(grace), done: make(chan struct{})}
		a.handovers[pod.UID] = h
		// It ends with its bound; one that outlives its pod is not waited for.
		go func() {
			defer close(h.done)
			ctx, cancel := context.WithDeadline(context.Background(), h.until)
			defer cancel()
			_ = running.handover(ctx, preStopExec(pod))
		}()
	}
	select {
	case <-h.done:
		return 0
	default:
		return max(0, min(again, time.Until(h.until)))
	}
}

// preStopExec and postStart are the hooks of a pod's main container.
func preStopExec(pod *corev1.Pod) *corev1.LifecycleHandler {
	if l := podLifecycle(pod); l != nil && l.PreStop != nil && l.PreStop.Exec != nil {
		return l.PreStop
	}
	return nil
}

func postStart(pod *corev1.Pod) *corev1.LifecycleHandler {
	if l := podLifecycle(pod); l != nil {
		return l.PostStart
	}
	return nil
}

func podLifecycle(pod *corev1.Pod) *corev1.Lifecycle {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == pod.Labels[v1alpha1.LabelComponent] {
			return pod.Spec.Containers[i].Lifecycle
		}
	}
	return nil
}
