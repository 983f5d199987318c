package containers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
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
		before := restarts(&pod)
		if err := Signal(&pod, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the process of pod %s: %w", name, err)
		}
		err := w.Await(ctx, func(o objects.Set) error {
			object := o.Get("Pod", name)
			if object == nil {
				return fmt.Errorf("pod %s does not exist", name)
			}
			if now := restartsOf(object.Object); now <= before {
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

func restarts(pod *corev1.Pod) int64 {
	sum := int64(0)
	for _, c := range pod.Status.ContainerStatuses {
		sum += int64(c.RestartCount)
	}
	return sum
}

// restartsOf is restarts for an object as it was watched.
func restartsOf(pod map[string]any) int64 {
	status, _ := pod["status"].(map[string]any)
	containers, _ := status["containerStatuses"].([]any)
	sum := int64(0)
	for _, c := range containers {
		if fields, ok := c.(map[string]any); ok {
			n, _ := fields["restartCount"].(int64)
			sum += n
		}
	}
	return sum
}
