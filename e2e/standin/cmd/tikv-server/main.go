// Command tikv-server is the stand-in for TiKV; see package tikv.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tikv"
)

func main() {
	os.Exit(process.Main(os.Stderr, "tikv", run))
}

func run(ctx context.Context) (err error) {
	cfg, err := tikv.ParseArgs(os.Args[1:], os.Getenv, os.Stdout)
	if err != nil {
		return err
	}
	out, err := process.OpenLog(cfg.LogFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	log, err := process.NewLogger(out, "tikv", cfg.LogLevel)
	if err != nil {
		return err
	}
	return tikv.Run(ctx, log, cfg)
}
