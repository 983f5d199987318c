package process

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// NewLogger returns a logger whose every line begins with "stand-in <name>",
// so that no reader takes a stand-in's log for that of the real program. An empty
// level means info; the level names of TiKV, TiDB and TiFlash are understood.
func NewLogger(w io.Writer, name, level string) (*slog.Logger, error) {
	var l slog.Level
	switch level {
	case "", "info", "information":
		l = slog.LevelInfo
	case "trace", "debug":
		l = slog.LevelDebug
	case "warn", "warning":
		l = slog.LevelWarn
	case "error", "fatal", "critical":
		l = slog.LevelError
	default:
		return nil, fmt.Errorf("unknown log level %q", level)
	}
	return slog.New(slog.NewTextHandler(PrefixWriter(w, name), &slog.HandlerOptions{Level: l})), nil
}

// PrefixWriter puts "stand-in <name> " before each write. Loggers write one
// line at a time, so this is before each line.
func PrefixWriter(w io.Writer, name string) io.Writer {
	return prefixWriter{to: w, prefix: "stand-in " + name + " "}
}

type prefixWriter struct {
	to     io.Writer
	prefix string
}

// Write implements io.Writer with a single write below, so that the lines of
// several goroutines never mix.
func (p prefixWriter) Write(line []byte) (int, error) {
	if _, err := p.to.Write(append([]byte(p.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// OpenLog opens the log file, or gives the standard error. The caller closes it.
func OpenLog(file string) (io.WriteCloser, error) {
	if file == "" {
		return nopCloser{os.Stderr}, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("make the log file's directory: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	return f, nil
}

type nopCloser struct{ io.Writer }

// Close implements io.Closer; the standard error stays open.
func (nopCloser) Close() error { return nil }
