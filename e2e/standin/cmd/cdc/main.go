// Command cdc is the stand-in for TiCDC; see package ticdc.
package main

import (
	"context"
	"os"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/ticdc"
)

func main() {
	os.Exit(process.Main(os.Stderr, "cdc", run))
}

func run(ctx context.Context) error {
	cfg, err := ticdc.ParseArgs(os.Args[1:], os.Stdout)
	if err != nil {
		return err
	}
	log, err := process.NewLogger(os.Stdout, "cdc", cfg.LogLevel)
	if err != nil {
		return err
	}
	return ticdc.Run(ctx, log, cfg)
}
