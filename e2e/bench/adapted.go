package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// Adapted is what an operator has cost that was measured by an Adapter.
type Adapted struct {
	// Name of the operator.
	Name string `json:"name"`
	// Clusters that came up at once.
	Clusters int `json:"clusters"`
	// Took is the time from the first cluster's creation until all were ready.
	Took time.Duration `json:"took"`
	// Start is what was used until then and in the 10 s that follow, in which an operator may
	// still write what it found; Idle afterwards within IdleFor.
	Start   Usage         `json:"start"`
	Idle    Usage         `json:"idle"`
	IdleFor time.Duration `json:"idleFor"`
	// Memory is what all processes keep for themselves in the end, in bytes, without their code.
	Memory int64 `json:"memory"`
	// Whole is all that they have in memory, with their code, in bytes.
	Whole int64 `json:"whole"`
}

// Usage is what the processes of an operator have asked and used.
type Usage struct {
	// Writes and Reads are requests to the API server, by its audit log.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Leases are the writes of Leases among them: most say that a process still leads.
	Leases int `json:"leases"`
	// Processor is their time, by the kernel.
	Processor time.Duration `json:"processor"`
}

// since is what was used after a former moment.
func (u Usage) since(before Usage) Usage {
	return Usage{Writes: u.Writes - before.Writes, Reads: u.Reads - before.Reads, Leases: u.Leases - before.Leases, Processor: u.Processor - before.Processor}
}

// LoadAdapters are ours, and then those of files.
func LoadAdapters(files ...string) ([]Adapter, error) {
	out := []Adapter{SuiteAdapter()}
	for _, file := range files {
		a, err := ReadAdapter(file)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// MeasureSideBySide measures each case with one adapter after the other. With an error comes
// what was measured until then.
func MeasureSideBySide(ctx context.Context, adapters []Adapter, cases []Case) ([]Adapted, error) {
	var out []Adapted
	for _, c := range cases {
		for _, a := range adapters {
			found, err := MeasureAdapter(ctx, a, c)
			if err != nil {
				return out, fmt.Errorf("measure %d clusters of %s: %w", c.Clusters, a.Name, err)
			}
			out = append(out, found)
		}
	}
	return out, nil
}

// SideBySide is a table of operators that were measured alike.
func SideBySide(all []Adapted) string {
	var out strings.Builder
	out.WriteString("| operator | " + adaptedHead + " |\n|---|" + adaptedRule + "\n")
	for _, a := range all {
		fmt.Fprintf(&out, "| %s | %s |\n", a.Name, a.figures())
	}
	return out.String()
}

// adaptedHead and adaptedRule are the columns of figures.
const (
	adaptedHead = "clusters | all Ready, s | writes per cluster (Leases) | reads per cluster | processor time per cluster, ms | memory, MiB (with code) | idle: writes (Leases), reads, ms"
	adaptedRule = "---|---|---|---|---|---|---|"
)

// figures are the cells of a row of a table.
func (a Adapted) figures() string {
	n, idle := float64(a.Clusters), "–"
	if a.IdleFor > 0 {
		idle = fmt.Sprintf("%d (%d), %d, %.0f in %s", a.Idle.Writes, a.Idle.Leases, a.Idle.Reads, toMilliseconds(a.Idle.Processor), a.IdleFor)
	}
	return fmt.Sprintf("%d | %.1f | %.1f (%.1f) | %.1f | %.0f | %d (%d) | %s", a.Clusters, a.Took.Seconds(),
		float64(a.Start.Writes)/n, float64(a.Start.Leases)/n, float64(a.Start.Reads)/n, toMilliseconds(a.Start.Processor)/n, a.Memory>>20, a.Whole>>20, idle)
}

// adaptedTable sets operators beside each other that were measured in one run.
func adaptedTable(out *strings.Builder, runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return len(r.Adapted) > 0 }) {
		return
	}
	fmt.Fprintf(out, "\n### Beside other operators\n\n"+
		"Each by its adapter, in one run, on a control plane of its own: the same clusters, simulated kubelets and databases. "+
		"Requests are those of the API server's audit log, until all are Ready and %s longer. Each process renews a Lease every 2 s, and *tidb-groups* alone is nine processes. "+
		"Memory is what the processes keep for themselves in the end, in brackets with code; that of ours is the benchmark's, which is large.\n\n"+
		"| commit | date | operator | %s |\n|---|---|---|%s\n", settled, adaptedHead, adaptedRule)
	for _, run := range runs {
		for _, a := range run.Adapted {
			fmt.Fprintf(out, "| %s | %s | %s | %s |\n", run.label(), run.Date, a.Name, a.figures())
		}
	}
}

// adapted is an operator that is being measured.
type adapted struct {
	adapter   Adapter
	rig       *rig.Rig
	plane     *controlplane.ControlPlane
	dir       string // for kubeconfigs and what the processes print
	databases string // the address at which databases are asked for
	names     string // the file that tells where names are asked for; empty if no process asks
	audit     audit
	all       processes
	ended     chan error // what a process ends with before it is told to
}

// MeasureAdapter brings clusters up with the operator of an adapter, on a control plane of
// its own whose audit log tells what the operator asks.
func MeasureAdapter(ctx context.Context, a Adapter, c Case) (out Adapted, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	m := adapted{adapter: a, ended: make(chan error, len(a.Processes))}
	if m.dir, err = os.MkdirTemp("", "tidb-groups-bench-"); err != nil {
		return out, fmt.Errorf("make a directory for the measurement: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	planeOptions, err := c.Plane()
	if err != nil {
		return out, err
	}
	planeOptions.Controllers = append(planeOptions.Controllers, a.Controllers...)
	if m.audit, planeOptions.APIServerFlags, err = newAudit(m.dir, auditPolicy); err != nil {
		return out, err
	}
	if m.plane, err = controlplane.Start(ctx, planeOptions); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, m.plane.Stop()) }()
	if err := m.apply(ctx); err != nil {
		return out, err
	}
	options, err := a.options(c)
	if err != nil {
		return out, err
	}
	if m.rig, err = openForeign(ctx, m.plane, options, c); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, m.rig.CloseWithPlane()) }()
	stop, err := m.serve(ctx)
	if err != nil {
		return out, err
	}
	defer stop()
	defer m.all.end()
	if err := m.start(ctx); err != nil {
		return out, err
	}
	return m.measure(ctx, c)
}

// fewRegions is how many regions a cluster has. PD moves leaders of many for a minute, at a pace
// that is the model's own, and an operator may write how many each store leads.
const fewRegions = 3

// options are those of the rig in which a case is measured.
func (a Adapter) options(c Case) (rig.Options, error) {
	out := c.options("bench")
	out.Privileged, out.Database.Regions = a.Privileged, fewRegions
	for _, m := range a.Members {
		member, err := m.membership()
		if err != nil {
			return out, err
		}
		out.Members = append(out.Members, member)
	}
	return out, nil
}

// serve tells processes where databases are: by the address of each PDGroup's, and by names if
// one asks for them.
func (m *adapted) serve(ctx context.Context) (stop func(), err error) {
	address, stopAddresses, err := serveAddresses(ctx, m.rig.Databases)
	if err != nil {
		return nil, err
	}
	m.databases = address
	if !slices.ContainsFunc(m.adapter.Processes, func(p AdapterProcess) bool { return p.Names }) {
		return stopAddresses, nil
	}
	server, err := serveNames(ctx, namePort, m.rig.Resolve)
	if err != nil {
		stopAddresses()
		return nil, err
	}
	stop = func() { server.stop(); stopAddresses() }
	if m.names, err = server.file(m.dir); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// apply applies the manifests, and waits for kinds among them.
func (m *adapted) apply(ctx context.Context) error {
	for _, file := range m.adapter.Apply {
		if _, err := m.plane.Kubectl(ctx, "apply", "--server-side", "--filename", file); err != nil {
			return fmt.Errorf("apply the manifests of %s: %w", m.adapter.Name, err)
		}
	}
	if _, err := m.plane.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		return fmt.Errorf("wait for the kinds of %s: %w", m.adapter.Name, err)
	}
	return nil
}

// start starts the processes.
func (m *adapted) start(ctx context.Context) error {
	itself, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for _, p := range m.adapter.Processes {
		kubeconfig, err := m.access(p.Name)
		if err != nil {
			return err
		}
		places := strings.NewReplacer(placeKubeconfig, kubeconfig, placeDatabases, m.databases, placeBench, itself)
		var program []string
		for _, word := range p.Command {
			program = append(program, places.Replace(word))
		}
		if p.Names {
			program = withNames(m.names, program)
		}
		env := map[string]string{}
		for name, value := range p.Env {
			env[name] = places.Replace(value)
		}
		within, cancel := context.WithCancel(ctx)
		cmd := newCommand(within, program, env)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			cancel()
			return fmt.Errorf("start process %s: %w", p.Name, err)
		}
		one := process{name: p.Name, cmd: cmd, stop: cancel, ended: make(chan struct{})}
		m.all = append(m.all, one)
		go m.watch(within, one, &said)
	}
	return nil
}

// watch tells when a process ends that was not told to, with the end of what it said.
func (m *adapted) watch(ctx context.Context, p process, said *bytes.Buffer) {
	defer close(p.ended)
	err := p.cmd.Wait()
	if ctx.Err() == nil {
		m.ended <- fmt.Errorf("process %s has ended: %w: %s", p.name, errors.Join(err, errEnded), shortenOutput(said.String()))
	}
}

// saidBytes is how much is shown of what a process has said.
const saidBytes = 2000

// panics is how Go begins to tell why a process ends; what follows is longer than is shown.
var panics = regexp.MustCompile(`(?m)^(panic|fatal error): `)

// shortenOutput is the end of what a process has said, or that it panics and where.
func shortenOutput(text string) string {
	if at := panics.FindStringIndex(text); at != nil {
		text = text[at[0]:]
		return strings.TrimSpace(text[:min(len(text), saidBytes)])
	}
	return strings.TrimSpace(text[max(0, len(text)-saidBytes):])
}

// errEnded is what a process ends with that has no error.
var errEnded = errors.New("it was not told to")

// access writes a kubeconfig for a process, which may do everything, as a user of its own.
func (m *adapted) access(name string) (string, error) {
	config, err := m.plane.User("bench-"+name, "system:masters", auditedGroup)
	if err != nil {
		return "", err
	}
	file := filepath.Join(m.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(renderKubeconfig(config), file); err != nil {
		return "", fmt.Errorf("write kubeconfig of process %s: %w", name, err)
	}
	return file, nil
}

// renderKubeconfig is the file that says what a configuration says.
func renderKubeconfig(config *rest.Config) clientcmdapi.Config {
	const name = "bench"
	out := *clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return out
}

// measure brings clusters up and watches the processes.
func (m *adapted) measure(ctx context.Context, c Case) (Adapted, error) {
	out := Adapted{Name: m.adapter.Name, Clusters: c.Clusters}
	if err := m.meanwhile(ctx, func(ctx context.Context) error { return waitFor(ctx, warm) }); err != nil {
		return out, err
	}
	before, err := m.used()
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := m.meanwhile(ctx, func(ctx context.Context) error { return m.bringUp(ctx, c) }); err != nil {
		return out, err
	}
	out.Took = time.Since(began)
	if err := m.meanwhile(ctx, func(ctx context.Context) error { return waitFor(ctx, settled) }); err != nil {
		return out, err
	}
	began = time.Now()
	up, err := m.used()
	if err != nil {
		return out, err
	}
	if err := m.meanwhile(ctx, func(ctx context.Context) error { return waitFor(ctx, c.Idle) }); err != nil {
		return out, err
	}
	after, err := m.used()
	if err != nil {
		return out, err
	}
	if c.Idle > 0 {
		out.IdleFor = time.Since(began).Round(time.Second) // on a busy machine it is longer than asked for
	}
	out.Start, out.Idle = up.since(before), after.since(up)
	for _, p := range m.all {
		own, all, err := p.memory()
		if err != nil {
			return out, err
		}
		out.Memory, out.Whole = out.Memory+own, out.Whole+all
	}
	return out, nil
}

// meanwhile does something, unless a process ends.
func (m *adapted) meanwhile(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case err := <-m.ended:
		cancel()
		if late := <-done; late != nil && !errors.Is(late, context.Canceled) {
			err = errors.Join(err, late)
		}
		return err
	}
}

// used is what all processes have asked and used so far.
func (m *adapted) used() (out Usage, err error) {
	if out, err = m.audit.counts(m.adapter.UserAgents); err != nil {
		return out, err
	}
	out.Processor, err = m.all.processor()
	return out, err
}

// bringUp creates clusters and waits until all are ready.
func (m *adapted) bringUp(ctx context.Context, c Case) error {
	var clusters []clusterObjects
	for at := range c.Clusters {
		one, err := m.adapter.objects(clusterName(at), m.rig.Namespace())
		if err != nil {
			return err
		}
		clusters = append(clusters, one)
	}
	ready, err := watchReady(ctx, m.plane.Config, m.adapter.Ready, clusters)
	if err != nil {
		return err
	}
	for _, one := range clusters {
		for _, o := range one.all {
			if err := m.rig.User().Create(ctx, o, client.FieldOwner("user")); err != nil {
				return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	if err := ready.await(ctx); err != nil {
		return fmt.Errorf("wait for %d clusters of %s: %w", c.Clusters, m.adapter.Name, err)
	}
	return nil
}
