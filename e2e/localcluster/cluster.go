package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Cluster is the local cluster of one state directory. It holds nothing that
// is not on disk as well: any number of them, in any process, may act on the
// same directory, one after the other.
type Cluster struct {
	layout    layout
	processes processes

	outLock sync.Mutex
	out     io.Writer
	started time.Time

	// Set by Up before anything is started.
	programs      map[string]string
	volumesBinary string
}

// New returns the cluster of a state directory. Nothing is done yet.
func New(o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	l := layout{root: o.Dir}
	return &Cluster{layout: l, processes: processes{layout: l}, out: o.Out, started: time.Now()}, nil
}

// Kubeconfig returns the path of the administrator's kubeconfig; the file
// exists once Up has succeeded.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig() }

// Kubectl returns the path of a kubectl of the cluster's own version; the file
// exists once Up has succeeded.
func (c *Cluster) Kubectl() string { return filepath.Join(c.layout.tools(), "kubectl") }

// Dir returns the state directory.
func (c *Cluster) Dir() string { return c.layout.root }

// say prints one step with the seconds since the cluster was opened.
func (c *Cluster) say(format string, args ...any) {
	c.outLock.Lock()
	defer c.outLock.Unlock()
	// Progress that cannot be shown must not stop the work.
	_, _ = fmt.Fprintf(c.out, "%6.1fs  %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}

func (c *Cluster) bin(name string) string { return c.programs[name] }

// lockLimit is how long one caller waits for another to finish.
const lockLimit = 10 * time.Minute

// lock keeps two callers from acting on the cluster at once. The kernel drops
// it when its holder dies, however that happens. It lies beside the state
// directory, because Down removes that.
func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.lockFile()), 0o755); err != nil {
		return nil, fmt.Errorf("lock cluster: %w", err)
	}
	var held *os.File
	told := false
	err = pollUntilDone(ctx, lockLimit, func(context.Context) (bool, error) {
		f, err := tryLock(c.lockFile())
		if f != nil || !errors.Is(err, errLocked) {
			held = f
			return true, err
		}
		if !told {
			told = true
			c.say("waiting for another localcluster command to finish")
		}
		return false, err
	})
	if err != nil {
		return nil, fmt.Errorf("lock cluster with %s: %w", c.lockFile(), err)
	}
	return func() { _ = held.Close() }, nil // closing drops the lock
}

func (c *Cluster) lockFile() string { return c.layout.root + ".lock" }

var errLocked = errors.New("another command holds it")

// tryLock takes the lock unless another command has it.
func tryLock(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err == nil && !isSameFile(f, file) {
		// Its last holder removed it meanwhile, so this lock excludes no other.
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func isSameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

// Programs are the binaries that a cluster runs, all of package binaries.
func Programs() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"}
}

// Up brings the cluster to the state in which every node is Ready and DNS
// answers. It starts what is missing: everything the first time, what died
// later, and nothing on a healthy cluster.
func (c *Cluster) Up(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return needsRoot(missingPackages(listRequirements(), isInstalled))
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	base, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	if err := c.startAll(ctx, base); err != nil {
		return err
	}
	c.say("cluster is up: KUBECONFIG=%s", c.Kubeconfig())
	return nil
}

// needsRoot tells an ordinary user what to type.
func needsRoot(missing []string) error {
	const why = "start local cluster: it needs root (mounts, network namespaces and control groups); run the command with sudo"
	if len(missing) == 0 {
		return errors.New(why)
	}
	return fmt.Errorf("%s, which also installs the missing Debian packages %s, or install them first: sudo sh -c '%s'",
		why, strings.Join(missing, ", "), installCommand(missing))
}

// prepare gets everything that daemons need before the first of them starts.
func (c *Cluster) prepare(ctx context.Context) (base []images.Archive, err error) {
	// First, because it can refuse, and building can take minutes.
	if err := c.layout.create(); err != nil {
		return nil, err
	}
	if err := c.layout.checkRoom(); err != nil {
		return nil, err
	}
	if err := c.ensurePackages(ctx); err != nil {
		return nil, err
	}
	if err := c.ensurePrograms(ctx, Programs()...); err != nil {
		return nil, err
	}
	if err := c.ensureVolumesBinary(ctx); err != nil {
		return nil, err
	}
	if base, err = images.Build(ctx, images.SetBase); err != nil {
		return nil, err
	}
	c.say("binaries and base images are ready")
	if err := c.layout.linkTool("kubectl", c.bin("kubectl")); err != nil {
		return nil, err
	}
	if err := bridgeFilter(ctx); err != nil {
		return nil, err
	}
	if err := c.checkForeign(ctx); err != nil {
		return nil, err
	}
	if err := c.createNetwork(ctx); err != nil {
		return nil, err
	}
	if err := c.checkPorts(ctx); err != nil {
		return nil, err
	}
	for _, n := range listNodes() {
		if err := createCgroups(n.Name); err != nil {
			return nil, err
		}
	}
	if err := c.layout.createPKI(time.Now()); err != nil {
		return nil, err
	}
	snapshotter, err := c.layout.snapshotter()
	if err != nil {
		return nil, err
	}
	if err := c.layout.writeConfigs(images.FullName(images.PauseRef), snapshotter); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.layout.volumes(), 0o755); err != nil {
		return nil, fmt.Errorf("create directory of volumes: %w", err)
	}
	return base, nil
}

// ensurePrograms finds or builds the named binaries.
func (c *Cluster) ensurePrograms(ctx context.Context, names ...string) error {
	c.programs = map[string]string{}
	for _, name := range names {
		path, err := binaries.Path(ctx, name)
		if err != nil {
			return err
		}
		// A link, which the cache may use, would hide which program runs.
		if c.programs[name], err = filepath.EvalSymlinks(path); err != nil {
			return fmt.Errorf("find program %s: %w", name, err)
		}
	}
	return nil
}

// ensureVolumesBinary builds the program that serves volumes, which is this
// package's own command: the caller may be a test.
func (c *Cluster) ensureVolumesBinary(ctx context.Context) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	dir, err := images.CompileBinaries(ctx, root, cache, "./e2e/cmd/localcluster")
	if err != nil {
		return err
	}
	c.volumesBinary = filepath.Join(dir, "localcluster")
	return nil
}

// startAll starts the control plane and the nodes side by side; what needs the
// API waits for it.
func (c *Cluster) startAll(ctx context.Context, base []images.Archive) error {
	group, groupCtx := errgroup.WithContext(ctx)
	apiUp := make(chan struct{})
	group.Go(func() error {
		for _, d := range []process{c.etcd(), c.apiServer()} {
			if err := c.ensure(groupCtx, d); err != nil {
				return err
			}
		}
		close(apiUp)
		rest, restCtx := errgroup.WithContext(groupCtx)
		rest.Go(func() error {
			// Who these two are allowed to be is part of the manifests.
			if err := c.applyAddons(restCtx); err != nil {
				return err
			}
			if err := c.ensure(restCtx, c.volumes()); err != nil {
				return err
			}
			return c.ensure(restCtx, c.proxy())
		})
		for _, d := range []process{c.controllerManager(), c.scheduler()} {
			rest.Go(func() error { return c.ensure(restCtx, d) })
		}
		return rest.Wait()
	})
	for _, n := range listNodes() {
		group.Go(func() error {
			if err := c.forgetBoot(groupCtx, n.Name); err != nil {
				return err
			}
			if err := c.layout.mountDisk(n.Name); err != nil {
				return err
			}
			if err := c.ensure(groupCtx, c.containerd(n)); err != nil {
				return err
			}
			if _, err := c.load(groupCtx, []string{n.Name}, base); err != nil {
				return err
			}
			select {
			case <-apiUp:
			case <-groupCtx.Done():
				return context.Cause(groupCtx)
			}
			return c.ensure(groupCtx, c.kubelet(n))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

func (c *Cluster) ensure(ctx context.Context, d process) error {
	started, err := c.processes.ensure(ctx, d)
	if err != nil {
		return err
	}
	if started {
		c.say("%s is ready", d.name)
	}
	return nil
}

// downLimit bounds the whole of Down.
const downLimit = 3 * time.Minute

// Down ends every process of the cluster and removes everything that it ever
// made, whatever state it is in. What cannot be removed is reported at the end,
// after all else has been tried; calling it again continues.
func (c *Cluster) Down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("stop local cluster: it needs root; run the command with sudo")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	// A directory that was never made cannot have left anything behind. One that
	// a user removed has its processes still.
	left, err := listProcesses(func(pid int) bool { return c.processes.belongsToCluster(pid, "") })
	if err != nil {
		return fmt.Errorf("stop local cluster: %w", err)
	}
	if _, err := os.Stat(c.layout.mark()); errors.Is(err, fs.ErrNotExist) && len(left) == 0 {
		c.say("no cluster in %s", c.layout.root)
		return errors.Join(c.layout.remove(), os.Remove(c.lockFile()))
	}
	var errs []error
	// Kubelets and containerds first: they would start again what is killed.
	for _, n := range listNodes() {
		errs = append(errs, c.killNode(ctx, n.Name))
	}
	errs = append(errs,
		killProcesses(ctx, func(pid int) bool { return c.processes.belongsToCluster(pid, "") }),
		unmountBelow(c.layout.root),
		c.removeNetwork(ctx),
		c.removeStrays(),
		removeCgroups(ctx, cgroupParent),
		c.layout.restoreSysctls(),
	)
	if err := errors.Join(errs...); err != nil {
		// The directory stays: it is what a repeated Down goes by.
		return fmt.Errorf("stop local cluster: %w", err)
	}
	if err := errors.Join(c.layout.remove(), os.Remove(c.lockFile())); err != nil {
		return fmt.Errorf("stop local cluster: %w", err)
	}
	c.say("cluster is down; nothing of it is left")
	return nil
}

// StopNode makes a node disappear as if its machine had lost power: nothing on
// it gets a signal to end, and its pods' addresses no longer answer. The node
// turns NotReady after about 16 s, and its pods are evicted 30 s later. Volumes
// and everything else on its disk stay.
func (c *Cluster) StopNode(ctx context.Context, name string) error {
	return c.atNode(ctx, name, func(n Node) error {
		if err := c.killNode(ctx, n.Name); err != nil {
			return err
		}
		c.say("%s is lost", n.Name)
		return nil
	})
}

// StartNode starts a node again after StopNode, as a machine that boots, and
// returns when it is Ready.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	return c.atNode(ctx, name, func(n Node) error {
		if err := c.ensurePrograms(ctx, "kubelet"); err != nil {
			return err
		}
		if err := createCgroups(n.Name); err != nil {
			return err
		}
		if err := c.layout.mountDisk(n.Name); err != nil {
			return err
		}
		for _, d := range []process{c.containerd(n), c.kubelet(n)} {
			if err := c.ensure(ctx, d); err != nil {
				return err
			}
		}
		return c.awaitNode(ctx, n.Name)
	})
}

// atNode does something to a node while no other command changes the cluster.
func (c *Cluster) atNode(ctx context.Context, name string, do func(Node) error) error {
	n, err := nodeByName(name)
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return do(n)
}
