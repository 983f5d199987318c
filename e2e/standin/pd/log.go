package pd

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lineWriter puts the word stand-in before every line.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer for whole lines.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range bytes.Split(bytes.TrimRight(p, "\n"), []byte("\n")) {
		if _, err := fmt.Fprintf(w.out, "stand-in %s\n", line); err != nil {
			return 0, fmt.Errorf("write log: %w", err)
		}
	}
	return len(p), nil
}

// openLog opens the log that the configuration asks for: a file, or standard error.
func openLog(cfg Config) (*slog.Logger, *zap.Logger, error) {
	var out io.Writer = os.Stderr
	if cfg.LogFile != "" {
		f, err := os.OpenFile(cfg.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open log file: %w", err)
		}
		out = f
	}
	w := &lineWriter{out: out}
	var level slog.Level
	if cfg.LogLevel == "fatal" {
		cfg.LogLevel = "error"
	}
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, nil, fmt.Errorf("log level: %w", err)
	}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})).With("member", cfg.Name)
	// etcd logs much that is not needed while it is healthy.
	style := zap.NewProductionEncoderConfig()
	style.EncodeTime = zapcore.ISO8601TimeEncoder
	enc := zapcore.NewConsoleEncoder(style)
	etcdLevel := zapcore.WarnLevel
	if level > slog.LevelWarn {
		etcdLevel = zapcore.ErrorLevel
	}
	etcd := zap.New(zapcore.NewCore(enc, zapcore.AddSync(w), etcdLevel)).Named("etcd")
	return log, etcd, nil
}
