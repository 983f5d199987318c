package controlplane

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

const (
	// startTimeout bounds the start of each process. A warm start takes a few
	// seconds; the rest is for machines that do much else.
	startTimeout = 90 * time.Second
	// stopTimeout bounds the graceful stop of each process.
	stopTimeout = 20 * time.Second
	// serviceRange has room for the Services of hundreds of clusters.
	serviceRange = "10.96.0.0/12"
)

// A collection of garbage is spared for memory: with Go's defaults, a fifth of the processor
// time of the tests and their API server is for the collector.
const (
	// heapGrowth of each process, in percent of what was in use after the last collection.
	heapGrowth = 400
	// heapLimit of etcd and of the API server, in bytes, from which on they collect more often.
	heapLimit = 2 << 30
)

// Options says what a test needs beyond the bare API. The zero value will do.
type Options struct {
	// CRDPaths are files or directories with CustomResourceDefinitions. They
	// are established when Start returns. A path that does not exist is an error.
	CRDPaths []string
	// ControllerManager runs kube-controller-manager with the controllers for
	// garbage collection, namespaces, service accounts and the protection of
	// claims. Without it, deleted owners leave their dependents, and deleted
	// namespaces stay Terminating.
	ControllerManager bool
	// Controllers are further controllers to run, by the names that
	// kube-controller-manager gives them ("disruption-controller"). They imply
	// ControllerManager.
	Controllers []string
	// APIServerFlags are passed to kube-apiserver, without the leading dashes,
	// and win over what this package sets.
	APIServerFlags map[string]string
	// HeapLimit is from how many bytes on etcd and the API server collect garbage more often;
	// 2 GiB if zero. A limit below what they must keep has them do little else.
	HeapLimit int64
}

// ControlPlane is a running Kubernetes API. Its methods may be called from
// several goroutines.
type ControlPlane struct {
	// Config reaches the API as a member of system:masters, without any limit
	// on the client's side. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file with the same access.
	Kubeconfig string
	// KubectlPath is the path of a kubectl of the API server's version.
	KubectlPath string
	// Logs is a directory with one log file per process. It goes away at Stop.
	Logs string

	env  *envtest.Environment
	root string
	// token is the administrator's: the API server verifies a client's certificate again with
	// each request, which takes 6 % of its processor time in the rig.
	token    string
	manager  *process
	guardian *guardian

	users    sync.Mutex // envtest's user registry is not safe for concurrent use
	stopOnce sync.Once
	stopErr  error
}

// Start builds what the cache does not have, starts the processes and returns
// once the API serves and the CRDs are established. The caller must call Stop.
// An error carries the end of the log of the process that failed.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	withManager := options.ControllerManager || len(options.Controllers) > 0
	for _, path := range options.CRDPaths {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("find CRDs: %w", err)
		}
	}
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	if withManager {
		names = append(names, "kube-controller-manager")
	}
	programs, err := binaries.Dir(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("find control plane programs: %w", err)
	}
	root, err := os.MkdirTemp("", "tidb-groups-controlplane-")
	if err != nil {
		return nil, fmt.Errorf("create control plane directory: %w", err)
	}
	guardian, err := startGuardian(root)
	if err != nil {
		_ = os.RemoveAll(root) // the error below matters more
		return nil, err
	}
	cp := &ControlPlane{
		KubectlPath: filepath.Join(programs, "kubectl"),
		Logs:        filepath.Join(root, "logs"),
		root:        root,
		token:       rand.Text(),
		guardian:    guardian,
	}
	if err := cp.start(ctx, programs, options, withManager); err != nil {
		err = fmt.Errorf("start control plane: %w%s", err, logTails(cp.Logs))
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context, programs string, options Options, withManager bool) error {
	if err := cp.configure(programs, options); err != nil {
		return err
	}
	config, err := cp.env.Start()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // envtest does not take a context
		return err
	}
	cp.Config = rest.CopyConfig(config)
	cp.Config.QPS = -1
	cp.Config.CertData, cp.Config.KeyData, cp.Config.BearerToken = nil, nil, cp.token
	cp.Kubeconfig = filepath.Join(cp.root, "kubeconfig")
	if err := os.WriteFile(cp.Kubeconfig, cp.env.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if withManager {
		return cp.startManager(ctx, filepath.Join(programs, "kube-controller-manager"), options.Controllers)
	}
	return nil
}

// Processes are the numbers of the control plane's processes, by their names, etcd's too.
func (cp *ControlPlane) Processes() (map[string]int, error) { return cp.guardian.notedProcesses() }

// configure prepares envtest's environment: all files below root, all output
// in log files, all processes known to the guardian.
func (cp *ControlPlane) configure(programs string, options Options) error {
	dirs := map[string]string{}
	for _, name := range []string{"logs", "etcd", "kube-apiserver"} {
		dirs[name] = filepath.Join(cp.root, name)
		if err := os.Mkdir(dirs[name], 0o700); err != nil {
			return fmt.Errorf("create directory of %s: %w", name, err)
		}
	}
	cp.env = &envtest.Environment{
		CRDDirectoryPaths:        options.CRDPaths,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	existing := false // a stray $USE_EXISTING_CLUSTER must not lead tests to a real cluster
	cp.env.UseExistingCluster = &existing

	limit := cmp.Or(options.HeapLimit, heapLimit)
	etcdPath, err := cp.guardian.wrap("etcd", filepath.Join(programs, "etcd"), limit)
	if err != nil {
		return err
	}
	etcdLog, err := cp.openLog("etcd")
	if err != nil {
		return err
	}
	cp.env.ControlPlane.Etcd = &envtest.Etcd{Path: etcdPath, DataDir: dirs["etcd"], Out: etcdLog, Err: etcdLog}

	serverPath, err := cp.guardian.wrap("kube-apiserver", filepath.Join(programs, "kube-apiserver"), limit)
	if err != nil {
		return err
	}
	serverLog, err := cp.openLog("kube-apiserver")
	if err != nil {
		return err
	}
	server := cp.env.ControlPlane.GetAPIServer()
	server.Path, server.CertDir, server.Out, server.Err = serverPath, dirs["kube-apiserver"], serverLog, serverLog
	cp.env.ControlPlane.KubectlPath = cp.KubectlPath
	flags := server.Configure()
	flags.Set("service-cluster-ip-range", serviceRange)
	// envtest turns the ServiceAccount plug-in off; we keep it, as in a
	// cluster. Namespace provides the account that it asks for.
	flags.Disable("disable-admission-plugins")
	tokens := filepath.Join(cp.root, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(cp.token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	flags.Set("token-auth-file", tokens)
	for name, value := range options.APIServerFlags {
		flags.Set(name, value)
	}
	return nil
}

func (cp *ControlPlane) openLog(name string) (*os.File, error) {
	// The file is closed with the test process: the child writes to it anyway.
	file, err := os.OpenFile(filepath.Join(cp.Logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	return file, nil
}

// Stop ends all processes and removes all files. Only the first call does
// anything; all return the same error.
func (cp *ControlPlane) Stop() error {
	cp.stopOnce.Do(func() {
		var errs []error
		if cp.manager != nil {
			errs = append(errs, cp.manager.stop(stopTimeout))
		}
		if cp.env != nil {
			errs = append(errs, cp.env.Stop())
		}
		if errors.Join(errs...) == nil {
			errs = append(errs, cp.guardian.forget())
		}
		errs = append(errs, cp.guardian.finish())
		if err := errors.Join(errs...); err != nil {
			cp.stopErr = fmt.Errorf("stop control plane: %w", err)
		}
	})
	return cp.stopErr
}

// sideBySide is how many tests of a package run at a time, unless -parallel says another
// number: they wait for most of their time.
const sideBySide = "8"

// Main is the body of a TestMain: it starts a control plane, hands it to ready,
// runs the tests, stops the control plane and returns the exit code.
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) { plane = cp }))
//	}
func Main(m *testing.M, options Options, ready func(*ControlPlane)) (code int) {
	// Long enough for building Kubernetes on a slow machine.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	cp, err := Start(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	ready(cp)
	return RunTests(m)
}

// RunTests runs the tests of a package that wait for a control plane more than they
// compute, several at a time, and returns the exit code.
func RunTests(m *testing.M) int {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", sideBySide) // the flag is there, and takes numbers
	}
	CollectLess()
	return m.Run()
}

// CollectLess lets this process collect garbage as seldom as a control plane does, unless
// $GOGC says how often.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}

// KubectlEnv is the environment in which kubectl has full access. What it remembers of the API
// server is removed with it, and does not pile up in the home directory. It collects no garbage
// in the moment for which it lives, which takes a fifth of its processor time.
func (cp *ControlPlane) KubectlEnv() []string {
	return append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig, "KUBECACHEDIR="+filepath.Join(cp.root, "kubectl"), fmt.Sprintf("GOGC=%d", heapGrowth))
}

// Kubectl runs kubectl with full access and returns what it prints on standard
// output. The error carries what it prints on standard error.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, cp.KubectlPath, append([]string{"--kubeconfig", cp.Kubeconfig}, args...)...)
	cmd.Env = cp.KubectlEnv()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return string(out), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// logTails quotes the end of every log, for an error message.
func logTails(dir string) string {
	const keep = 1500 // bytes per log
	var text strings.Builder
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is well formed
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil || len(log) == 0 {
			continue
		}
		log = log[max(0, len(log)-keep):]
		fmt.Fprintf(&text, "\n--- end of %s:\n%s", filepath.Base(path), strings.TrimSpace(string(log)))
	}
	return text.String()
}
