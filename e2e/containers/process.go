package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// Crash implements scenario.World: it kills the process of a pod's main container,
// which on the local cluster is a process of this machine.
func (w *World) Crash(ctx context.Context, name string, times int) error {
	if w.provider.Name() != provider.Local || times < 0 {
		return scenario.ErrNotHere
	}
	for range times {
		var pod corev1.Pod
		if err := w.session.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &pod); err != nil {
			return fmt.Errorf("find pod %s: %w", name, err)
		}
		before := Restarts(&pod)
		if err := Signal(&pod, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the process of pod %s: %w", name, err)
		}
		err := w.Await(ctx, func(o objects.Set) error {
			object := o.Get("Pod", name)
			if object == nil {
				return fmt.Errorf("pod %s does not exist", name)
			}
			var now corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &now); err != nil {
				return fmt.Errorf("read pod %s: %w", name, err)
			}
			if Restarts(&now) <= before {
				return fmt.Errorf("the container of pod %s has not started again", name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoProcess = errors.New("none of its processes runs on this machine")

// Signal sends a signal to the main process of a pod's first container.
func Signal(pod *corev1.Pod, what syscall.Signal) error {
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	program := pod.Spec.Containers[0].Command[0]
	found := false
	for _, file := range processes {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), string(pod.UID)) {
			continue // the process has ended, or is another's
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || strings.SplitN(string(line), "\x00", 2)[0] != program {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return fmt.Errorf("read process ID: %w", err)
		}
		if err := syscall.Kill(id, what); err != nil {
			return fmt.Errorf("send signal %s: %w", what, err)
		}
		found = true
	}
	if !found {
		return errNoProcess
	}
	return nil
}

// Restarts is how often the containers of a pod were started again.
func Restarts(pod *corev1.Pod) int32 {
	sum := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		sum += c.RestartCount
	}
	return sum
}
