package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

const (
	// startTime bounds how long a server may take until it listens.
	startTime = 60 * time.Second
	// again is how soon it is looked whether it does.
	again = 20 * time.Millisecond
)

// Server is what runs, and how.
type Server struct {
	// Address to listen at, host:port.
	Address string
	// Dir has the buckets, which are its folders. Beside is an empty folder for what is known
	// of their files.
	Dir, Beside string
	// AccessKey and SecretKey of the one whom it knows.
	AccessKey, SecretKey string
	// Certificate is a folder with tls.crt and tls.key; without one there is no TLS.
	Certificate string
	// Flags are further ones of versitygw.
	Flags []string
}

// URL of the server.
func (s Server) URL() string {
	if s.Certificate != "" {
		return "https://" + s.Address
	}
	return "http://" + s.Address
}

// Start runs the server until the context ends, and returns when it listens; ended gets how
// it ended.
func (s Server) Start(ctx context.Context) (ended <-chan error, err error) {
	program, err := binaries.Path(ctx, "versitygw")
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.Dir, s.Beside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a folder for S3: %w", err)
		}
	}
	args := append(slices.Clone(s.Flags), "--port", s.Address, "--access", s.AccessKey, "--secret", s.SecretKey, "--quiet")
	if s.Certificate != "" {
		args = append(args, "--cert", filepath.Join(s.Certificate, v1alpha1.TLSKeyCert), "--key", filepath.Join(s.Certificate, v1alpha1.TLSKeyKey))
	}
	return startProgram(ctx, program, s.Address, append(args, "posix", "--sidecar", s.Beside, s.Dir)...)
}

// startProgram runs a program until the context ends, and returns when it listens.
func startProgram(ctx context.Context, program, address string, args ...string) (ended <-chan error, err error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // built by the test kit
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	if err := waitForListener(ctx, address, end); err != nil {
		return end, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	return end, nil
}

// waitForListener returns when a server listens.
func waitForListener(ctx context.Context, address string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case why := <-ended:
			return fmt.Errorf("it has ended: %w", errors.Join(why, err))
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w", err)
		case <-ticker.C:
		}
	}
}
