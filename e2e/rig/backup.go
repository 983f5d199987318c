package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tools"
	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// copiesDatabase reports whether a pod is of a Job of a Backup, a LogBackup or a Restore.
func copiesDatabase(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelRun] != "" }

// copyRun is the program of a pod that copies a database.
type copyRun struct {
	// ended is closed when it has.
	ended chan struct{}
	// result is what it has left, and err what it ended with; to be read afterwards.
	result string
	err    error
}

// runCopy plays the pod of a Job of a Backup or a Restore: the very program that runs there
// (package runner) runs here, on directories in place of volumes, with stand-ins for the
// tools, and with a database that has no TiDB in it.
func (a *actor) runCopy(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "start", a.delays.Start); left > 0 {
		return left, nil
	}
	reason, message, err := a.obstacle(ctx, pod)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		return 0, a.patchStatus(ctx, pod, waitingPod(pod, reason, message))
	}
	key := client.ObjectKeyFromObject(pod)
	a.mu.Lock()
	running := a.processes[key]
	a.mu.Unlock()
	if running == nil {
		if running, err = a.beginCopy(ctx, pod); err != nil {
			return 0, err
		}
	}
	select {
	case <-running.copy.ended:
		return 0, a.patchStatus(ctx, pod, endedPod(pod, running.copy.result, running.copy.err != nil))
	default:
		return 0, a.patchStatus(ctx, pod, runningPod(pod, facts{ip: running.ip, ready: true}))
	}
}

// beginCopy starts the program of a pod.
func (a *actor) beginCopy(ctx context.Context, pod *corev1.Pod) (*process, error) {
	command, err := a.command(ctx, pod)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &copyRun{ended: make(chan struct{})}
	out := &process{pod: pod.UID, node: pod.Spec.NodeName, ip: a.addresses.next(), copy: c, stop: func() error {
		cancel()
		<-c.ended
		return nil
	}}
	if command.Progress != "" {
		command.Progress = net.JoinHostPort(out.ip, strconv.Itoa(progress.Port))
	}
	a.mu.Lock()
	a.processes[client.ObjectKeyFromObject(pod)] = out
	a.mu.Unlock()
	go func() {
		defer cancel()
		c.err = command.Run(ctx, io.Discard)
		text, err := os.ReadFile(command.Result)
		c.result, c.err = string(text), errors.Join(c.err, err)
		close(c.ended)
		if ctx.Err() == nil {
			_ = a.poke(ctx, pod) // or the rig ends
		}
	}()
	return out, nil
}

// command is the command line of a pod's program, with what it mounts where it is here.
func (a *actor) command(ctx context.Context, pod *corev1.Pod) (runner.Command, error) {
	main := pod.Spec.Containers[0]
	own := filepath.Join(a.records, "pods", string(pod.UID))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return runner.Command{}, fmt.Errorf("make a directory for pod %s: %w", pod.Name, err)
	}
	here := map[string]string{corev1.TerminationMessagePathDefault: filepath.Join(own, "result")}
	for _, m := range main.VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		dir, err := a.mount(ctx, pod, pod.Spec.Volumes[at], own)
		if err != nil {
			return runner.Command{}, err
		}
		here[m.MountPath] = dir
	}
	args := slices.Clone(main.Command[1:])
	for _, arg := range main.Args {
		flag, value, _ := strings.Cut(arg, "=")
		for there, dir := range here {
			if rest, below := strings.CutPrefix(value, there); below && (rest == "" || rest[0] == '/') {
				value = dir + rest
			}
		}
		args = append(args, flag+"="+value)
	}
	out, err := runner.Parse(args)
	if err != nil {
		return out, fmt.Errorf("read the command line of pod %s: %w", pod.Name, err)
	}
	if err := a.lead(&out, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]}); err != nil {
		return out, err
	}
	if out.Verb == runner.VerbClean {
		return out, nil
	}
	server, err := a.speaks()
	if err != nil {
		return out, err
	}
	if closed, err := a.closed(ctx, pod.Namespace, out.Database.Host); err != nil || closed {
		return out, err // it knocks at a Service that leads nowhere
	}
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		return out, fmt.Errorf("read the address of the database: %w", err)
	}
	out.Database.Host = host
	if _, err := fmt.Sscan(port, &out.Database.Port); err != nil {
		return out, fmt.Errorf("read the port of the database: %w", err)
	}
	if out.Start != nil {
		return out, nil
	}
	tool := filepath.Join(own, "tool")
	err = tools.Write(out.Tool, tool)
	out.Tool = tool
	return out, err
}

// closed reports whether a host is a Service that lets no client in. A log is written without one.
func (a *actor) closed(ctx context.Context, namespace, host string) (bool, error) {
	name, _, _ := strings.Cut(host, ".")
	if name == "" {
		return false, nil
	}
	var s corev1.Service
	err := a.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Service %s: %w", name, err)
	}
	return s.Spec.Selector[v1alpha1.LabelClosed] != "", nil
}

// mount makes the directory that stands for a volume of a pod, and fills that of a Secret.
func (a *actor) mount(ctx context.Context, pod *corev1.Pod, v corev1.Volume, own string) (string, error) {
	dir := filepath.Join(own, "volumes", v.Name)
	if v.PersistentVolumeClaim != nil {
		claim, err := a.data(ctx, pod)
		if err != nil {
			return "", err
		}
		dir = a.volume(claim)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a directory for volume %s: %w", v.Name, err)
	}
	if v.Secret == nil {
		return dir, nil
	}
	var s corev1.Secret
	err := a.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: v.Secret.SecretName}, &s)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Secret %s: %w", v.Secret.SecretName, err)
	}
	for key, value := range s.Data {
		for _, item := range v.Secret.Items {
			if item.Key == key {
				key = item.Path
				break
			}
		}
		if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
			return "", fmt.Errorf("write key %s of Secret %s: %w", key, s.Name, err)
		}
	}
	return dir, nil
}

// volume is the directory that stands for the volume of a claim.
func (a *actor) volume(claim types.UID) string {
	return filepath.Join(a.records, "claims", string(claim))
}

// Folders implements scenario.World.
func (r *Rig) Folders(ctx context.Context, claim string) ([]string, error) {
	var c corev1.PersistentVolumeClaim
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: claim}, &c); err != nil {
		return nil, fmt.Errorf("get claim %s: %w", claim, err)
	}
	var out []string
	root := r.actor.volume(c.UID)
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := filepath.Rel(root, at)
		folder, _, isData := strings.Cut(filepath.ToSlash(file), "/"+storage.DataFolder+"/")
		if !isData {
			folder = path.Dir(folder)
		}
		if !slices.Contains(out, folder) {
			out = append(out, folder)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the files on the volume of claim %s: %w", claim, err)
	}
	return out, nil
}

// mysqlStarter returns a server that speaks MySQL's protocol, started when it is asked for first.
func mysqlStarter(ctx context.Context) func() (*memorydb.Server, error) {
	return func() (*memorydb.Server, error) {
		server, err := memorydb.Open(ctx)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = server.Close() }) // the rig ends
		}
		return server, err
	}
}
