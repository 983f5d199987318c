package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Places outside the state directory where kubelets and containerds leave
// something, because these paths are fixed in them.
const (
	// containerLogs has a link per container log.
	containerLogs = "/var/log/containers"
	// cniResults has a file per network attachment.
	cniResults = "/var/lib/cni/results"
	// pluginSocket is where every kubelet waits for device plugins.
	pluginSocket = "/var/lib/kubelet/device-plugins/kubelet.sock"
)

// removeStrays deletes what was left in those places: links and files that
// point into the state directory, and directories that are empty then.
func (c *Cluster) removeStrays() error {
	below := c.layout.root + "/"
	return errors.Join(
		removeEntries(containerLogs, func(file string) bool { return pointsInto(file, below) }),
		removeEntries(cniResults, func(file string) bool {
			// The result names the network namespace, which lies in our directory.
			content, err := os.ReadFile(file)
			return err == nil && bytes.Contains(content, []byte(`"`+below))
		}),
		removeEmpty(containerLogs),
		removeEmpty(cniResults, filepath.Dir(cniResults)),
		removeDeadSocket(pluginSocket),
		removeEmpty(filepath.Dir(pluginSocket), "/var/lib/kubelet"),
		removeEmpty("/run/containerd/s", "/run/containerd"),
	)
}

func pointsInto(link, below string) bool {
	target, err := os.Readlink(link)
	return err == nil && strings.HasPrefix(target, below)
}

func removeEntries(dir string, ours func(file string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if file := filepath.Join(dir, e.Name()); ours(file) {
			errs = append(errs, os.Remove(file))
		}
	}
	return errors.Join(errs...)
}

// removeDeadSocket removes a socket that no process listens on.
func removeDeadSocket(file string) error {
	conn, err := net.Dial("unix", file)
	if err == nil {
		return conn.Close() // another process listens on it now
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return nil // there is none
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove leftover: %w", err)
	}
	return nil
}

// removeEmpty removes directories, as far as they are empty, in the given order.
func removeEmpty(dirs ...string) error {
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
		if len(entries) > 0 {
			return nil
		}
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove leftover: %w", err)
		}
	}
	return nil
}
