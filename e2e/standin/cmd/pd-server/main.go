// Command pd-server is a stand-in for the real pd-server, with its flags, its
// configuration file and its ports. It is for tests and demos only.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/standin/pd"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in pd-server:", err)
		os.Exit(1)
	}
}

// flags are those of the real command. What is empty leaves the file's value.
type flags struct {
	file        string
	version     bool
	configCheck bool
	force       bool
	values      map[string]*string
}

func newCommand() *cobra.Command {
	f := &flags{values: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "pd-server", Short: "stand-in for pd-server, for tests and demos", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	for name, usage := range map[string]string{
		"name": "name of this member", "data-dir": "path of the data", "client-urls": "URLs to listen on for clients",
		"advertise-client-urls": "client URLs that are told to others", "peer-urls": "URLs to listen on for members",
		"advertise-peer-urls": "peer URLs that are told to others", "initial-cluster": "first members: name=url,…",
		"join": "client URLs of a cluster to join", "metrics-addr": "Prometheus push address (accepted, not used)",
		"log-file": "log file", "cacert": "CA of peers and clients", "cert": "certificate", "key": "key of the certificate",
	} {
		f.values[name] = set.String(name, "", usage)
	}
	// The default wins over the configuration file, as PD's does.
	f.values["L"] = set.StringP("log-level", "L", "info", "log level: debug, info, warn, error, fatal")
	set.StringVar(&f.file, "config", "", "configuration file")
	set.BoolVarP(&f.version, "version", "V", false, "print the version and exit")
	set.BoolVar(&f.configCheck, "config-check", false, "check the configuration and exit")
	set.BoolVar(&f.force, "force-new-cluster", false, "start a new cluster of one member from the data")
	return cmd
}

func (f *flags) run(cmd *cobra.Command) error {
	cfg := pd.DefaultConfig()
	// A real cluster splits its first regions where their peers are already. Those of the
	// stand-in are placed one by one, which at the model's speed lasts a minute.
	cfg.Timing = model.DefaultTiming()
	cfg.Timing.PeerMoves *= 5
	if v := os.Getenv("STANDIN_VERSION"); v != "" {
		cfg.Build.Version = v
	}
	if f.version {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Release Version: %s\nEdition: stand-in\nGit Commit Hash: %s\nGit Branch: \nUTC Build Time:  %s\n",
			cfg.Build.Version, cfg.Build.GitHash, cfg.Build.BuildTS)
		if err != nil {
			return fmt.Errorf("print version: %w", err)
		}
		return nil
	}
	if v := os.Getenv("STANDIN_REGIONS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("STANDIN_REGIONS: %w", err)
		}
		cfg.Regions = n
	}
	if f.file != "" {
		if err := cfg.LoadFile(f.file); err != nil {
			return err
		}
	}
	for name, into := range map[string]*string{
		"name": &cfg.Name, "data-dir": &cfg.DataDir, "client-urls": &cfg.ClientURLs, "peer-urls": &cfg.PeerURLs,
		"advertise-client-urls": &cfg.AdvertiseClientURLs, "advertise-peer-urls": &cfg.AdvertisePeerURLs,
		"initial-cluster": &cfg.InitialCluster, "join": &cfg.Join, "metrics-addr": &cfg.MetricsAddr, "L": &cfg.LogLevel,
		"log-file": &cfg.LogFile, "cacert": &cfg.CACert, "cert": &cfg.Cert, "key": &cfg.Key,
	} {
		if v := *f.values[name]; v != "" {
			*into = v
		}
	}
	cfg.ForceNewCluster = cfg.ForceNewCluster || f.force
	if f.configCheck {
		if err := cfg.Complete(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "config check successful")
		if err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return runServer(ctx, cfg)
}

// runServer runs until it is told to stop. A member that was removed goes on
// answering, as the real one does.
func runServer(ctx context.Context, cfg pd.Config) error {
	server, err := pd.Start(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			// It was told to stop before it had found the others.
			return nil
		}
		return err
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serve: %w", err)
	}
}
