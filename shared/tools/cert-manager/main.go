// Command cert-manager is the controllers of cert-manager that issue certificates by an
// Issuer or a ClusterIssuer with a CA of its own or of a Secret. Its own program, which has
// all of them, is a module without a release of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// Backoff of a request that has failed, as cert-manager's own program has it.
const (
	shortest = time.Hour
	longest  = 32 * time.Hour
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "connection to the API server")
	namespace := flag.String("namespace", "", "look after this one alone, and no ClusterIssuers")
	resources := flag.String("cluster-resource-namespace", "cert-manager", "where ClusterIssuers have their Secrets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, controller.ContextOptions{Kubeconfig: *kubeconfig, Namespace: *namespace, IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: *resources}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs every controller that is linked in until the context ends.
func run(ctx context.Context, options controller.ContextOptions) error {
	options.CertificateRequestMinimumBackoffDuration, options.CertificateRequestMaximumBackoffDuration = shortest, longest
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	var all sync.WaitGroup
	failed := make(chan error, len(controller.Known()))
	for name, build := range controller.Known() {
		if options.Namespace != "" && name == clusterissuers.ControllerName {
			continue
		}
		one, err := build(factory)
		if err != nil {
			return fmt.Errorf("build controller %s: %w", name, err)
		}
		all.Go(func() {
			if err := one.Run(1, ctx); err != nil {
				failed <- fmt.Errorf("run controller %s: %w", name, err)
			}
		})
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
