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
		pod, err := w.pod(ctx, name)
		if err != nil {
			return err
		}
		before := CountRestarts(pod)
		if err := Signal(pod, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the process of pod %s: %w", name, err)
		}
		err = w.Await(ctx, func(o objects.Set) error {
			object := o.Get("Pod", name)
			if object == nil {
				return fmt.Errorf("pod %s does not exist", name)
			}
			var now corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &now); err != nil {
				return fmt.Errorf("read pod %s: %w", name, err)
			}
			if CountRestarts(&now) <= before {
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

// WipeData implements scenario.World: while a process stands still, the files on its
// pod's volumes go; then it is killed.
func (w *World) WipeData(ctx context.Context, names []string) error {
	if w.provider.Name() != provider.Local {
		return scenario.ErrNotHere
	}
	var pods []*corev1.Pod
	for _, name := range names {
		pod, err := w.pod(ctx, name)
		if err != nil {
			return err
		}
		if err := Signal(pod, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop the process of pod %s: %w", name, err)
		}
		if err := wipeClaims(pod); err != nil {
			return fmt.Errorf("wipe the volumes of pod %s: %w", name, err)
		}
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		if err := Signal(pod, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the process of pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// pod returns a pod as it is now.
func (w *World) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := w.session.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &pod); err != nil {
		return nil, fmt.Errorf("find pod %s: %w", name, err)
	}
	return &pod, nil
}

// wipeClaims erases what is on the claims of a pod, as its main process sees them.
func wipeClaims(pod *corev1.Pod) error {
	claims := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		claims[v.Name] = v.PersistentVolumeClaim != nil
	}
	all, err := findMainProcesses(pod)
	if err != nil {
		return err
	}
	for _, id := range all {
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			if !claims[m.Name] {
				continue
			}
			files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(id), "root", m.MountPath, "*"))
			if err != nil {
				return fmt.Errorf("list files: %w", err)
			}
			for _, file := range files {
				if err := os.RemoveAll(file); err != nil {
					return fmt.Errorf("remove file: %w", err)
				}
			}
		}
	}
	return nil
}

var errNoProcess = errors.New("none of its processes runs on this machine")

// Signal sends a signal to the main process of a pod's first container.
func Signal(pod *corev1.Pod, what syscall.Signal) error {
	all, err := findMainProcesses(pod)
	if err != nil {
		return err
	}
	for _, id := range all {
		if err := syscall.Kill(id, what); err != nil {
			return fmt.Errorf("send signal %s: %w", what, err)
		}
	}
	return nil
}

// findMainProcesses returns the main process of a pod's first container, by its ID on this
// machine; there may be more for a moment.
func findMainProcesses(pod *corev1.Pod) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	program := pod.Spec.Containers[0].Command[0]
	var out []int
	for _, file := range files {
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
			return nil, fmt.Errorf("read process ID: %w", err)
		}
		out = append(out, id)
	}
	if len(out) == 0 {
		return nil, errNoProcess
	}
	return out, nil
}

// CountRestarts is how often the containers of a pod were started again.
func CountRestarts(pod *corev1.Pod) int32 {
	sum := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		sum += c.RestartCount
	}
	return sum
}
