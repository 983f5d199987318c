package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// diskSize is how large the disk is on which a kubelet keeps its pods: their
	// directories, which hold emptyDir volumes. It is a file system in memory, which
	// takes only as much of that as it holds. Images, logs and the volumes of claims
	// lie elsewhere.
	diskSize = 512 << 20
	// diskLow is below which part of it a kubelet calls its disk full: Kubernetes'
	// own default.
	diskLow = "10%"
	// imagesLow is how much of the machine's disk must be free for a kubelet to keep its images:
	// the base of all of them comes from an archive that is not loaded again.
	imagesLow = "100Mi"
	// roomNeeded is what images, logs and claims take, and what is left for others.
	roomNeeded = 10 << 30
	// diskLeft is what FillDisk leaves, so that the kubelet can still write down
	// what it does.
	diskLeft = 8 << 20
)

func (l layout) disk(node string) string   { return l.nodeFile(node, "disk") }
func (l layout) filler(node string) string { return filepath.Join(l.disk(node), "filler") }

// mountDisk gives a node its disk, unless it has it.
func (l layout) mountDisk(node string) error {
	dir := l.disk(node)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make disk of node %s: %w", node, err)
	}
	var within, above unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &within), unix.Stat(filepath.Dir(dir), &above)); err != nil {
		return fmt.Errorf("look for disk of node %s: %w", node, err)
	}
	if within.Dev != above.Dev {
		return nil
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", diskSize)); err != nil {
		return fmt.Errorf("mount disk of node %s: %w", node, err)
	}
	return nil
}

// checkRoom refuses a machine whose disk images and claims would fill. A cluster that has been
// there before has taken its room.
func (l layout) checkRoom() error {
	if _, err := os.Stat(l.volumes()); err == nil {
		return nil
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(l.root, &disk); err != nil {
		return fmt.Errorf("measure the disk of %s: %w", l.root, err)
	}
	return checkFreeSpace(l.root, int64(disk.Bavail)*disk.Bsize) //nolint:gosec // a number of blocks
}

// checkFreeSpace is content with enough free room, in bytes.
func checkFreeSpace(dir string, free int64) error {
	if free >= roomNeeded {
		return nil
	}
	return fmt.Errorf("the disk of %s has %d MiB free, and images, logs and claims take up to %d: remove what is not needed, such as compiled code: go clean -cache", dir, free>>20, roomNeeded>>20)
}

// FillDisk fills the disk of a node, as a pod that writes without end would. Its
// kubelet notices within about 10 s, puts DiskPressure on the node, and evicts its
// pods one after the other; none but critical ones may start there until FreeDisk.
func (c *Cluster) FillDisk(ctx context.Context, name string) error {
	return c.atNode(ctx, name, c.fillDisk)
}

func (c *Cluster) fillDisk(n Node) (err error) {
	file, err := os.Create(c.layout.filler(n.Name))
	if err != nil {
		return fmt.Errorf("fill disk of node %s: %w", n.Name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		return fmt.Errorf("measure disk of node %s: %w", n.Name, err)
	}
	if disk.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("fill disk of node %s: %s is no disk of its own: bring the cluster up first", n.Name, c.layout.disk(n.Name))
	}
	size := int64(disk.Bavail)*disk.Bsize - diskLeft
	if size <= 0 {
		return nil // it is full
	}
	if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		return fmt.Errorf("fill disk of node %s: %w", n.Name, err)
	}
	c.say("the disk of %s is full", n.Name)
	return nil
}

// FreeDisk makes room again on a disk that FillDisk has filled. The node takes pods
// again after about 20 s.
func (c *Cluster) FreeDisk(_ context.Context, name string) error {
	n, err := nodeByName(name)
	if err != nil {
		return err
	}
	err = os.Remove(c.layout.filler(n.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("free disk of node %s: %w", n.Name, err)
	}
	c.say("the disk of %s has room", n.Name)
	return nil
}
