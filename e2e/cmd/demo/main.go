// Command demo shows the suite at work: "up" goes from nothing to a Ready TiDB
// cluster on a real Kubernetes, "down" takes everything away again.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/e2e/provider"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	root := &cobra.Command{Use: "demo", Short: "From nothing to a Ready TiDB cluster on a real Kubernetes", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(
		&cobra.Command{Use: "up", Short: "Start Kubernetes, the operators and a TiDB cluster", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return bringUp(cmd.Context(), os.Stdout)
		}},
		&cobra.Command{Use: "down", Short: "Stop everything that up started", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := provider.New(provider.FromEnvironment(os.Stdout))
			if err != nil {
				return err
			}
			return p.Down(cmd.Context())
		}},
	)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}
