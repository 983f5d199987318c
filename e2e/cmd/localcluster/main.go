// Command localcluster runs a complete three-node Kubernetes on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/e2e/localcluster"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	var dir string
	open := func(cmd *cobra.Command) (*localcluster.Cluster, error) {
		return localcluster.New(localcluster.Options{Dir: dir, Out: cmd.OutOrStdout()})
	}
	root := &cobra.Command{
		Use:           "localcluster",
		Short:         "A complete three-node Kubernetes on this machine, without Docker and without a registry",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", "", "state directory (default $"+localcluster.DirEnv+", else /var/lib/tidb-groups-local)")
	root.AddCommand(
		onCluster(open, "up", "Start the cluster, or repair what died of it", (*localcluster.Cluster).Up),
		onCluster(open, "down", "Stop the cluster and remove everything of it", (*localcluster.Cluster).Down),
		loadCommand(open), statusCommand(open), logsCommand(open),
		onNode(open, "stop-node", "Make a node disappear as if its machine lost power", (*localcluster.Cluster).StopNode),
		onNode(open, "start-node", "Start a lost node again", (*localcluster.Cluster).StartNode),
		onNode(open, "fill-disk", "Fill the disk of a node's kubelet, so that it evicts its pods", (*localcluster.Cluster).FillDisk),
		onNode(open, "free-disk", "Make room again on a disk that was filled", (*localcluster.Cluster).FreeDisk),
		volumesCommand(),
	)
	return root
}

type opener func(*cobra.Command) (*localcluster.Cluster, error)

func onCluster(open opener, use, short string, do func(*localcluster.Cluster, context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		c, err := open(cmd)
		if err != nil {
			return err
		}
		return do(c, cmd.Context())
	}}
}

func onNode(open opener, use, short string, do func(*localcluster.Cluster, context.Context, string) error) *cobra.Command {
	return &cobra.Command{Use: use + " <node>", Short: short, Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		c, err := open(cmd)
		if err != nil {
			return err
		}
		return do(c, cmd.Context(), args[0])
	}}
}

func loadCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "load [archive, set or image]...",
		Short: "Import images into every node",
		Long: "Import image archives (files that exist) and images that are built from this repository, by name or set " +
			"(base, operators, standins), into every node. Without arguments everything is built and imported.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd)
			if err != nil {
				return err
			}
			archives, err := resolveArchives(cmd.Context(), args)
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), archives...)
		},
	}
}

// resolveArchives turns file names into archives and builds the rest.
func resolveArchives(ctx context.Context, args []string) ([]images.Archive, error) {
	var archives []images.Archive
	var build []string
	for _, a := range args {
		if info, err := os.Stat(a); err != nil || info.IsDir() {
			build = append(build, a)
			continue
		}
		found, err := images.ReadArchives(a)
		if err != nil {
			return nil, err
		}
		archives = append(archives, found...)
	}
	if len(build) == 0 && len(args) > 0 {
		return archives, nil
	}
	built, err := images.Build(ctx, build...)
	if err != nil {
		return nil, err
	}
	return append(archives, built...), nil
}

func statusCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show processes, nodes and the kubeconfig; fails unless all is well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(cmd)
			if err != nil {
				return err
			}
			healthy, err := c.Status(cmd.Context(), cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if !healthy {
				return errors.New("the cluster is not complete; `localcluster up` repairs it")
			}
			return nil
		},
	}
}

func logsCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "logs <process>",
		Short: "Print the log of a process, as status names it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd)
			if err != nil {
				return err
			}
			return c.Logs(args[0], cmd.OutOrStdout())
		},
	}
}

// volumesCommand is what up runs as a daemon; it is no command for people.
func volumesCommand() *cobra.Command {
	var kubeconfig, dir string
	cmd := &cobra.Command{
		Use:    "volumes",
		Short:  "Serve the volumes of the cluster's StorageClass",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return localcluster.ServeVolumes(cmd.Context(), kubeconfig, dir, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig to use")
	cmd.Flags().StringVar(&dir, "volumes", "", "directory that volumes are made in")
	return cmd
}
