package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the exclusive lock of a file, which is created when missing, and
// returns the function that gives it back. It waits as long as ctx allows. The
// kernel gives the lock back when its holder dies.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- acquireFlock(file) }()
	select {
	case err := <-locked:
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Closing the only descriptor releases the lock.
		return func() { _ = file.Close() }, nil
	case <-ctx.Done():
		// The system call cannot be interrupted. Should it succeed after all,
		// the lock must not stay with us.
		go func() {
			err := <-locked
			_ = errors.Join(err, file.Close()) // nothing is left that could report it
		}()
		return nil, ctx.Err()
	}
}

func acquireFlock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
