package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/operators/all/suite"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// OperatorCommand is the argument with which this program is one operator.
const OperatorCommand = "operator"

// warm is how long processes have to start and fill their caches before clusters are made.
const warm = 10 * time.Second

// stopTime bounds how long a process may take to end.
const stopTime = 20 * time.Second

// Processes is what operators that run in processes of their own have used.
type Processes struct {
	// Clusters that came up at once.
	Clusters int `json:"clusters"`
	// Together says that one process ran all operators.
	Together bool `json:"together"`
	// Took is the time until all were Ready and nothing was left to do.
	Took time.Duration `json:"took"`
	// Start and Idle are the processor time of all processes from the creation of the
	// clusters until then, and afterwards within IdleFor.
	Start   time.Duration `json:"start"`
	Idle    time.Duration `json:"idle"`
	IdleFor time.Duration `json:"idleFor"`
	// Memory is what each process keeps for itself in the end, in bytes, without its code.
	Memory map[string]int64 `json:"memory"`
}

// Total is the memory of all processes, in bytes.
func (p Processes) Total() int64 {
	var out int64
	for _, bytes := range p.Memory {
		out += bytes
	}
	return out
}

// how the operators ran.
func (p Processes) how() string {
	if p.Together {
		return "all operators in one process"
	}
	return "each operator in a process of its own"
}

// String tells it on a line.
func (p Processes) String() string {
	return fmt.Sprintf("%d clusters, %s: Ready in %.1f s, %.0f ms of processor time per cluster, %.0f ms within %s of nothing to do, %d MiB of memory",
		p.Clusters, p.how(), p.Took.Seconds(), toMilliseconds(p.Start)/float64(p.Clusters), toMilliseconds(p.Idle), p.IdleFor, p.Total()>>20)
}

// MeasureProcesses brings clusters up with operators in processes of their own, or in one.
func MeasureProcesses(ctx context.Context, plane *controlplane.ControlPlane, c Case, together bool) (out Processes, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	r, err := openForeign(ctx, plane, rig.Options{Name: "bench", ClusterWide: true, Delays: rig.Delays{Ready: ready}}, c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	address, stop, err := serveAddresses(ctx, r.Databases)
	if err != nil {
		return out, err
	}
	defer stop()
	names := v1alpha1.Operators()
	if together {
		names = []string{v1alpha1.OperatorAll}
	}
	var all processes
	defer func() { err = errors.Join(err, all.stop()) }()
	for _, name := range names {
		if err := all.start(ctx, name, plane.Kubeconfig, address); err != nil {
			return out, err
		}
	}
	out = Processes{Clusters: c.Clusters, Together: together, IdleFor: c.Idle, Memory: map[string]int64{}}
	if err := waitFor(ctx, warm); err != nil {
		return out, err
	}
	before, err := all.processor()
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := bringUp(ctx, r, c); err != nil {
		return out, err
	}
	out.Took = time.Since(began)
	ready, err := all.processor()
	if err != nil {
		return out, err
	}
	if err := waitFor(ctx, c.Idle); err != nil {
		return out, err
	}
	after, err := all.processor()
	if err != nil {
		return out, err
	}
	out.Start, out.Idle = ready-before, after-ready
	for _, p := range all {
		if out.Memory[p.name], _, err = p.memory(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// serveAddresses tells operators of other processes where PD of a PDGroup listens.
func serveAddresses(ctx context.Context, databases *rig.Databases) (address string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve addresses of PD: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: stopTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		database, err := databases.Of(types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, database.Address())
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// RunOperator runs an operator, or all of them, in this process until the context ends.
// databases is where the addresses of PD are asked for.
func RunOperator(ctx context.Context, name, kubeconfig, databases string) error {
	rig.NewJournal(nil) // which takes what is logged
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	flags, err := operator.Parse(name, []string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--image=none", "--log-level=error",
		"--leader-elect", "--leader-election-namespace=default"}) // as its Deployment has it: Leases are part of what it costs
	if err != nil {
		return err
	}
	program := operator.Program{Name: name}
	for _, d := range suite.Program().Operators {
		if name != v1alpha1.OperatorAll && name != d.Name {
			continue
		}
		if d.Dialer != nil {
			d.Dialer = newLookupDialer(databases, d.Dialer)
		}
		program.Operators = append(program.Operators, d)
	}
	return operator.Run(ctx, config, program, flags)
}

// newLookupDialer asks where PD is, and then does as the operator does by itself.
func newLookupDialer(databases string, own operator.Dialer) operator.Dialer {
	return func(_, domain string, of pdclient.TLS, _ prometheus.Registerer) (pd.Dialer, error) {
		return func(group types.NamespacedName) (pd.Client, error) {
			response, err := http.Get(databases + "/" + group.String()) //nolint:noctx // a Dialer has no context, and the answer is on this machine
			if err != nil {
				return nil, fmt.Errorf("ask where PD is: %w", err)
			}
			defer func() { _ = response.Body.Close() }()
			address, err := io.ReadAll(response.Body)
			if err != nil {
				return nil, fmt.Errorf("ask where PD is: %w", err)
			}
			// What is measured of calls is told apart by PD, and is not read.
			dial, err := own("http://"+string(address), domain, of, prometheus.NewRegistry())
			if err != nil {
				return nil, err
			}
			return dial(group)
		}, nil
	}
}

// process is one that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	stop context.CancelFunc
	// ended is closed when a caller has waited for its end; nil if none waits.
	ended chan struct{}
}

type processes []process

// start starts this program as an operator, with the heap that its Deployment gives it.
func (p *processes) start(ctx context.Context, name, kubeconfig, databases string) error {
	itself, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := newCommand(ctx, []string{itself, OperatorCommand, name, kubeconfig, databases}, heapEnvironment(name))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		return fmt.Errorf("start %s operator: %w", name, err)
	}
	*p = append(*p, process{name: name, cmd: cmd, stop: cancel})
	return nil
}

// heapEnvironment is the environment of an operator that has the heap that its Deployment gives it,
// nearly: no container says here how much memory there is, of which it would take 80 %.
func heapEnvironment(operator string) map[string]string {
	out := map[string]string{"GOGC": "40", "GOMEMLIMIT": "100MiB"}
	if operator == v1alpha1.OperatorAll {
		out["GOMEMLIMIT"] = "300MiB"
	}
	return out
}

// newCommand is a program with its arguments that is interrupted when the context ends.
func newCommand(ctx context.Context, program []string, env map[string]string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...) //nolint:gosec // who runs the bench names it
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	return cmd
}

// stop ends all of them.
func (p *processes) stop() error {
	for _, one := range *p {
		one.stop()
	}
	var errs []error
	for _, one := range *p {
		if err := one.cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s operator: %w", one.name, err))
		}
	}
	return errors.Join(errs...)
}

// end ends all of them, whose ends others wait for.
func (p *processes) end() {
	for _, one := range *p {
		one.stop()
	}
	for _, one := range *p {
		<-one.ended
	}
}

// processor is the time that all of them have used.
func (p *processes) processor() (time.Duration, error) {
	var out time.Duration
	for _, one := range *p {
		used, err := readProcessorTime(one.cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("read what the %s operator has used: %w", one.name, err)
		}
		out += used
	}
	return out, nil
}

// readProcessorTime is the time that a process has used.
func readProcessorTime(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// memory is what the process holds that no file could give back: its heap and stacks; and all
// of it that is in memory.
func (p process) memory() (own, all int64, err error) {
	if own, all, err = readMemory(p.cmd.Process.Pid); err != nil {
		return 0, 0, fmt.Errorf("read the memory of the %s operator: %w", p.name, err)
	}
	return own, all, nil
}

// readMemory is what a process keeps for itself, in bytes, without its code, and all of it.
func readMemory(pid int) (own, all int64, err error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := proc.NewStatus()
	return int64(status.RssAnon), int64(status.VmRSS), err //nolint:gosec // no process has so much
}
