// Command tiproxy is the stand-in for TiProxy; see package tiproxy.
package main

import (
	"context"
	"os"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tidb"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tiproxy"
)

func main() {
	os.Exit(process.Main(os.Stderr, "tiproxy", run))
}

func run(ctx context.Context) error {
	cfg, err := tiproxy.ParseArgs(os.Args[1:], os.Stdout)
	if err != nil {
		return err
	}
	log, err := process.NewLogger(os.Stdout, "tiproxy", "info")
	if err != nil {
		return err
	}
	tidb.QuietLibraries(os.Stdout)
	return tiproxy.Run(ctx, log, cfg)
}
