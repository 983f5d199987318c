package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func (c *Cluster) containerd(n Node) process {
	path, _ := findExecutable("containerd") // ensurePackages has seen it
	return process{
		name: n.Name + "/containerd", path: path, limit: readyLimit,
		args:  []string{"--config", c.layout.config(n.Name + "-containerd.toml"), "--log-level", "warn"},
		ready: criReady(c.layout.socket(n.Name)),
	}
}

func (c *Cluster) kubelet(n Node) process {
	l := c.layout
	return process{
		name: n.Name + "/kubelet", path: c.bin("kubelet"), limit: readyLimit,
		args: []string{
			"--config=" + l.config(n.Name+"-kubelet.yaml"),
			"--kubeconfig=" + l.config(n.Name+".kubeconfig"),
			"--root-dir=" + filepath.Join(l.disk(n.Name), "kubelet"),
			"--cert-dir=" + l.nodeFile(n.Name, "kubelet-pki"),
			"--hostname-override=" + n.Name,
			"--node-ip=" + n.Address,
			"--node-labels=topology.kubernetes.io/zone=" + n.Zone + ",topology.kubernetes.io/region=" + region,
		},
		ready: httpReady(http.DefaultTransport, "http://"+n.Address+":10248/healthz"),
	}
}

// ctr runs containerd's client against one node, in the namespace of Kubernetes.
func (c *Cluster) ctr(ctx context.Context, node string, args ...string) (string, error) {
	return runIn(ctx, c.processes.toolEnv(), "ctr", append([]string{"--address", c.layout.socket(node), "--namespace", "k8s.io"}, args...)...)
}

func nodeByName(name string) (Node, error) {
	all := listNodes()
	i := slices.IndexFunc(all, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return Node{}, fmt.Errorf("find node %q: nodes are node-1 to node-%d", name, len(all))
	}
	return all[i], nil
}

// killNode ends a node as if its machine lost power: kubelet, containerd, shims
// and every process in a container are killed without warning, its network
// namespaces and mounts vanish. Its disk stays, and what is on it.
func (c *Cluster) killNode(ctx context.Context, node string) error {
	err := killProcesses(ctx, func(pid int) bool {
		return c.processes.belongsToCluster(pid, node+"/") || isInCgroup(pid, nodeCgroup(node)) || c.isShim(pid, node)
	})
	if err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	errs := []error{c.removeShimSockets(node), unmountBelow(c.layout.node(node), c.layout.disk(node))}
	for _, name := range []string{node + "/kubelet", node + "/containerd"} {
		if err := os.Remove(c.layout.pidFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	// What a machine has in memory is gone after a crash. The bundles of dead
	// containers and the namespaces' empty files belong to it.
	errs = append(errs, os.RemoveAll(c.layout.nodeFile(node, "run")))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop node %s: %w", node, err)
	}
	return nil
}

// forgetBoot clears what a node's containerd kept in memory-like places before
// the machine was booted again; containerd itself expects them to be empty then.
func (c *Cluster) forgetBoot(ctx context.Context, node string) error {
	content, err := os.ReadFile(c.layout.pidFile(node + "/containerd"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pid file: %w", err)
	}
	var last identity
	if json.Unmarshal(content, &last) == nil && last.Boot == bootID() {
		return nil
	}
	return c.killNode(ctx, node)
}

// isShim recognises a containerd shim of a node by the socket that it reports
// to, should it have lost its environment.
func (c *Cluster) isShim(pid int, node string) bool {
	args := procFields(pid, "cmdline")
	return len(args) > 0 && strings.Contains(filepath.Base(args[0]), "containerd-shim") && slices.Contains(args, c.layout.socket(node))
}

// removeShimSockets deletes the sockets of the node's shims. They lie in a
// directory that all containerds of a machine share, so their names are taken
// from the node's own bundles.
func (c *Cluster) removeShimSockets(node string) error {
	files, err := filepath.Glob(c.layout.nodeFile(node, "run/containerd/io.containerd.runtime.v2.task/k8s.io/*/address"))
	if err != nil {
		return fmt.Errorf("find shim sockets: %w", err)
	}
	var errs []error
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		socket, ok := strings.CutPrefix(strings.TrimSpace(string(content)), "unix://")
		if !ok {
			continue
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// snapshotter returns overlayfs where the state directory's file system can
// carry it, and otherwise the one that copies.
func (l layout) snapshotter() (name string, err error) {
	const best, fallback = "overlayfs", "native"
	dir := filepath.Join(l.root, "overlay-test")
	var paths []string
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		p := filepath.Join(dir, d)
		if err := os.MkdirAll(p, 0o755); err != nil {
			return "", fmt.Errorf("test overlay file system: %w", err)
		}
		paths = append(paths, p)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", paths[0], paths[1], paths[2])
	if err := unix.Mount("overlay", paths[3], "overlay", 0, options); err != nil {
		return fallback, nil //nolint:nilerr // that it fails is the answer
	}
	if err := unix.Unmount(paths[3], 0); err != nil {
		return "", fmt.Errorf("test overlay file system: %w", err)
	}
	return best, nil
}
