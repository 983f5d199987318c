// Command tidb-server is the stand-in for TiDB; see package tidb.
package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tidb"
)

func main() {
	// The engine's tables of collations are most of the heap and never change.
	debug.SetGCPercent(40)
	os.Exit(process.Main(os.Stderr, "tidb", run))
}

func run(ctx context.Context) (err error) {
	cfg, err := tidb.ParseArgs(os.Args[1:], os.Getenv, os.Stdout)
	if err != nil {
		return err
	}
	out, err := process.OpenLog(cfg.LogFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	log, err := process.NewLogger(out, "tidb", cfg.LogLevel)
	if err != nil {
		return err
	}
	tidb.QuietLibraries(out)
	return tidb.Run(ctx, log, cfg)
}
