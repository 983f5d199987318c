// Command tikv-server is a test double of TiKV; see package tikv.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/pingcap/log"

	"github.com/tidb-groups/tidb-groups/e2e/tikv"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/settings"
)

// version is what the store tells PD; the linker sets it.
var version = "8.5.0"

// versionEnv overrides version, as for the stand-ins.
const versionEnv = "STANDIN_VERSION"

// memoryLimit is where the garbage collector begins to work harder, so that three
// stores fit beside everything else.
const memoryLimit = 160 << 20

func main() {
	err := run()
	if err != nil && !errors.Is(err, settings.ErrDone) {
		fmt.Fprintln(os.Stderr, "tikv-server:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	if v := os.Getenv(versionEnv); v != "" {
		version = v
	}
	version = strings.TrimPrefix(version, "v")
	s, err := settings.Parse(os.Args[1:], version, os.Stdout)
	if err != nil {
		return err
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	out := io.Writer(os.Stderr)
	if s.LogFile != "" {
		if err := os.MkdirAll(filepath.Dir(s.LogFile), 0o755); err != nil {
			return fmt.Errorf("make the log file's directory: %w", err)
		}
		f, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("open the log file: %w", err)
		}
		defer func() { _ = f.Close() }() // written already
		out = f
	}
	level := slog.LevelInfo
	switch s.LogLevel {
	case "debug", "trace":
		level = slog.LevelDebug
	case "warn", "warning":
		level = slog.LevelWarn
	case "error", "fatal", "critical":
		level = slog.LevelError
	}
	// TiDB's engine writes a log of its own; only what goes wrong is of interest.
	quiet, props, err := log.InitLogger(&log.Config{Level: "warn", File: log.FileLogConfig{Filename: s.LogFile}})
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	log.ReplaceGlobals(quiet, props)
	err = tikv.Run(ctx, s, version, slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // it was told to stop while it waited for PD
	}
	return err
}
