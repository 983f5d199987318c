package rig

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Journal reads what all operators of a process log, for what they must not log: a
// panic that was recovered and, where they have the rights that they need, a refusal.
type Journal struct {
	errors io.Writer

	mu       sync.Mutex
	panics   []string
	refusals []string
}

// NewJournal returns a journal that the process's operators log to from now on.
// Errors that they log are printed to a writer as well, if it is not nil.
func NewJournal(errors io.Writer) *Journal {
	j := &Journal{errors: errors}
	logger := j.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return j
}

func (j *Journal) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if strings.Contains(args, "panic") {
			j.panics = append(j.panics, prefix+" "+args)
		}
		if strings.Contains(args, "forbidden") || strings.Contains(args, "Forbidden") {
			j.refusals = append(j.refusals, prefix+" "+args)
		}
		if j.errors != nil && strings.Contains(args, `"error"=`) {
			_, _ = fmt.Fprintln(j.errors, prefix, args) // for a user to read
		}
	}, funcr.Options{LogTimestamp: true})
}

// Panics returns the lines that tell of a panic.
func (j *Journal) Panics() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.panics...)
}

// Refusals returns the lines that tell of a request that was forbidden.
func (j *Journal) Refusals() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.refusals...)
}
