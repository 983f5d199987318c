package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/index"
	"github.com/tidb-groups/tidb-groups/shared/metrics"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/shard"
	"github.com/tidb-groups/tidb-groups/shared/status"
)

// gracefulShutdown bounds how long running reconciles may take to finish after
// SIGTERM; the pods' termination grace of 15 s is longer.
const gracefulShutdown = 10 * time.Second

// Main runs an operator until SIGTERM or SIGINT and returns its exit code.
func Main(definition Definition) int {
	return MainOf(NewProgram(definition))
}

// MainOf is Main for operators that share a process.
func MainOf(program Program) int {
	flags, err := Parse(program.Name, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		printMessage(os.Stderr, "%s-operator: %v; run with --help for the flags\n", program.Name, err)
		return 2
	case flags.Version:
		printMessage(os.Stdout, "%s-operator %s\n", program.Name, Version())
		return 0
	}
	options, err := flags.logOptions()
	if err != nil {
		printMessage(os.Stderr, "%s-operator: %v\n", program.Name, err)
		return 2
	}
	logger := zap.New(options...)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	limitHeap(logger, memlimit.FromCgroup)

	cfg, err := ctrl.GetConfig()
	if err != nil {
		logger.Error(err, "no connection to Kubernetes: run in a pod, or set KUBECONFIG")
		return 1
	}
	if flags.ClusterDomain == "" && program.asksPD() != nil {
		flags.ClusterDomain = clusterDomain(logger, httpclient.ResolvConf)
	}
	ctx := ctrl.SetupSignalHandler()
	if flags.Image == "" && slices.ContainsFunc(program.Operators, func(d Definition) bool { return d.Tools }) {
		if flags.Image, err = ownImage(ctx, cfg); err != nil {
			logger.Error(err, "the image that this operator runs from is not known: name it with --image, or say --image=none")
			return 1
		}
	}
	if err := Run(ctx, cfg, program, flags); err != nil {
		logger.Error(err, "stopped")
		return 1
	}
	return 0
}

// clusterDomain returns the cluster's domain, which the operator's own pod knows. It
// says if that is not so.
func clusterDomain(logger logr.Logger, resolvConf string) string {
	domain := httpclient.ClusterDomain(resolvConf)
	if domain == "" {
		logger.Info("the cluster's domain is not known, because this is not a pod, or its search list is not the usual one: "+
			"PD's name is looked up as it is, and a namespace called svc could answer for it; name the domain with --cluster-domain", "file", resolvConf)
	}
	return domain
}

// Run runs a program until the context ends. Tests call it directly, several in one
// process.
func Run(ctx context.Context, cfg *rest.Config, program Program, flags Flags) error {
	if err := checkComponentTable(v1alpha1.ComponentTable()); err != nil {
		return err
	}
	if err := checkCRDs(ctx, cfg); err != nil {
		return err
	}
	if flags.Shard == "" {
		return runManager(ctx, cfg, program, flags, nil)
	}
	return shard.Of{Shard: flags.Shard, Operator: program.Name}.Serve(ctx, cfg, func(ctx context.Context, scope *shard.Scope) error {
		return runManager(ctx, cfg, program, flags, scope)
	})
}

// runManager runs a program in the namespaces of the scope, or if nil of the flags.
func runManager(ctx context.Context, cfg *rest.Config, program Program, flags Flags, scope *shard.Scope) error {
	reach := Reach{Credentials: credentials.New(time.Now), MessageDelay: status.MessageDelay, Scope: scope}
	dial, unregister, err := newDialer(program, flags, reach.Credentials)
	if err != nil {
		return err
	}
	defer unregister()
	reach.Dial = dial
	manager, err := NewManager(ctx, cfg, program, flags, reach)
	if err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("run %s operator: %w", program.Name, err)
	}
	return nil
}

// newDialer returns how the program reaches PD, nil if it never asks, and what
// gives its metrics back. They have a registry of their own, so that several
// programs, and one after the other, can run in one process.
func newDialer(program Program, flags Flags, store *credentials.Store) (pd.Dialer, func(), error) {
	asks := program.asksPD()
	if asks == nil {
		return nil, func() {}, nil
	}
	calls := prometheus.NewRegistry()
	dial, err := asks(flags.PDURL, flags.ClusterDomain, store.TLSForPD, calls)
	if err != nil {
		return nil, nil, err
	}
	all := prometheus.WrapRegistererWith(prometheus.Labels{"operator": program.Name}, ctrlmetrics.Registry)
	if err := all.Register(calls); err != nil {
		return nil, nil, fmt.Errorf("register metrics of PD calls: %w", err)
	}
	return dial, func() { all.Unregister(calls) }, nil
}

// Reach is how a program reaches databases, and where it acts.
type Reach struct {
	// Dial reaches PD; nil for a program that does not ask it.
	Dial pd.Dialer
	// Credentials are what clusters are connected to with, by Dial too.
	Credentials *credentials.Store
	// MessageDelay is for how long words of a status wait.
	MessageDelay time.Duration
	// Scope are the namespaces of its shard; nil for those of the flags.
	Scope *shard.Scope

	poller *polling.Poller // of all operators of the program
}

// NewManager builds the manager of a program with its controllers.
func NewManager(ctx context.Context, cfg *rest.Config, program Program, flags Flags, reach Reach) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = float32(flags.ClientQPS), flags.ClientBurst
	cfg.UserAgent = "tidb-groups/" + program.Name

	lease, namespaces := "tidb-groups-"+program.Name, flags.namespaces()
	if reach.Scope != nil {
		lease, namespaces = lease+"-"+flags.Shard, reach.Scope.Namespaces()
	}
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         scheme,
		NewCache:       index.New,
		MapperProvider: newMapper,
		Cache:          cacheOptions(namespaces, program.cachedObjects(), flags.RelistPeriod),
		Client:         client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},

		Metrics:                       flags.metrics(),
		HealthProbeBindAddress:        flags.ProbeAddress,
		PprofBindAddress:              flags.ProfilingAddress,
		LeaderElection:                flags.LeaderElect,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       flags.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(gracefulShutdown),
		Controller: config.Controller{
			MaxConcurrentReconciles: flags.Concurrency,
			ReconciliationTimeout:   flags.ReconcileTimeout,
			RecoverPanic:            ptr.To(true),
			// Several managers of one process, as in tests, may run the same
			// controller.
			SkipNameValidation: ptr.To(true),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build manager: %w", err)
	}
	if err := addRunnables(manager, flags, &reach); err != nil {
		return nil, err
	}
	for _, definition := range program.Operators {
		if err := addOperator(ctx, manager, definition, flags, reach); err != nil {
			return nil, err
		}
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	if err := manager.AddReadyzCheck("caches", cachesSynced(manager)); err != nil {
		return nil, fmt.Errorf("add readiness check: %w", err)
	}
	return manager, nil
}

// addRunnables adds what runs beside the controllers to a manager, and the poller to reach.
func addRunnables(manager ctrl.Manager, flags Flags, reach *Reach) error {
	if flags.LeaderElect {
		end := func(ctx context.Context) error { return endAfterStandstill(ctx, manager.GetLogger()) }
		if err := manager.Add(ctrlmanager.RunnableFunc(end)); err != nil {
			return fmt.Errorf("add the end after a standstill: %w", err)
		}
	}
	if reach.Credentials != nil {
		look := func(ctx context.Context) error { return reach.Credentials.Run(ctx, manager.GetAPIReader()) }
		if err := manager.Add(ctrlmanager.RunnableFunc(look)); err != nil {
			return fmt.Errorf("add the look at Secrets: %w", err)
		}
	}
	if reach.Dial != nil {
		reach.poller = polling.New(reach.Dial)
		if err := manager.Add(reach.poller); err != nil {
			return fmt.Errorf("add PD poller: %w", err)
		}
	}
	return nil
}

// addOperator adds an operator to a manager, with its metrics. All of a program ask PD
// through one poller.
func addOperator(ctx context.Context, manager ctrl.Manager, definition Definition, flags Flags, reach Reach) error {
	env := Env{
		Name:     definition.Name,
		Manager:  manager,
		Client:   manager.GetClient(),
		Live:     manager.GetAPIReader(),
		Scheme:   manager.GetScheme(),
		Recorder: &status.Journal{EventRecorder: manager.GetEventRecorder(definition.Name), Log: manager.GetLogger().WithName("journal"), Now: time.Now},

		Image:         parseImageFlag(flags.Image),
		Credentials:   reach.Credentials,
		ClusterScoped: len(flags.namespaces()) == 0,
		Controller: controller.Options{
			MaxConcurrentReconciles: flags.Concurrency,
		},
		PerNamespace: flags.perNamespace(),
		Scope:        reach.Scope,

		Waits:   &gate.Waits{},
		Applied: apply.NewMemory(),
		Records: revision.NewMemory(),
		Now:     time.Now,
	}
	env.Status = status.Writer{Apply: env.Apply(), Recorder: env.Recorder, Version: Version(), Words: status.NewWords(env.Now, reach.MessageDelay)}
	var err error
	if env.Outcomes, err = newOutcomes(ctrlmetrics.Registry, definition.Kind); err != nil {
		return err
	}
	if definition.Dialer != nil && reach.poller != nil {
		env.PD = reach.poller.ForAsker(definition.Name)
	}
	if err := definition.Setup(ctx, env); err != nil {
		return fmt.Errorf("set up %s operator: %w", definition.Name, err)
	}
	for _, kind := range append([]Kind{{definition.Kind, definition.List}}, definition.Beside...) {
		if err := metrics.Register(ctrlmetrics.Registry, metricsOf(env, definition, kind)); err != nil {
			return err
		}
	}
	return nil
}

// metricsOf is what the metrics of a kind are read from.
func metricsOf(env Env, definition Definition, kind Kind) metrics.Source {
	out := metrics.Source{Kind: kind.Name, List: kind.List, Reader: env.Client, Expires: definition.Expires, Now: env.Now}
	if env.PD != nil {
		out.View = env.PD.View
	}
	return out
}

// parseImageFlag is the image that a flag names.
func parseImageFlag(flag string) string {
	if flag == noImage {
		return ""
	}
	return flag
}

// version is set by the build (-X).
var version string

// Version returns the version that the binary was built as; without one, the
// commit's, if the build knew it.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}

// printMessage prints for a user; a terminal that is gone is no loss.
func printMessage(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
