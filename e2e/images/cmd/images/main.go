// Command images builds the images of the local cluster and prints one line
// per image: name, digest and the archive's path.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidb-groups/tidb-groups/e2e/images"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	return &cobra.Command{
		Use:           "images [set or image]...",
		Short:         "Build container images as archives, without a container engine",
		Long:          "Build container images as archives that `ctr images import` reads. Without names all are built; sets are " + strings.Join(images.Sets(), ", ") + ".",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, names []string) error {
			archives, err := images.Build(cmd.Context(), names...)
			if err != nil {
				return err
			}
			for _, a := range archives {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), a.Ref, a.Digest, a.Path); err != nil {
					return fmt.Errorf("print image: %w", err)
				}
			}
			return nil
		},
	}
}
