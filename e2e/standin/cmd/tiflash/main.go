// Command tiflash is the stand-in for TiFlash; see package tiflash.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tiflash"
)

func main() {
	os.Exit(process.Main(os.Stderr, "tiflash", run))
}

func run(ctx context.Context) (err error) {
	cfg, err := tiflash.ParseArgs(os.Args[1:], os.Getenv, os.Stdout)
	if err != nil {
		return err
	}
	out, err := process.OpenLog(cfg.LogFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	log, err := process.NewLogger(out, "tiflash", cfg.LogLevel)
	if err != nil {
		return err
	}
	return tiflash.Run(ctx, log, cfg)
}
