package rig_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log := &journal{}
	logger := log.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	code := controlplane.Main(m, controlplane.Options{
		CRDPaths:          []string{"../../deploy/crds"},
		ControllerManager: true,
	}, func(cp *controlplane.ControlPlane) { plane = cp })
	os.Exit(max(code, log.verdict()))
}

// journal keeps what operators must never log: a panic that was recovered.
type journal struct {
	mu     sync.Mutex
	panics []string
}

// logger prints errors when RIG_LOG is set.
func (j *journal) logger() logr.Logger {
	loud := os.Getenv("RIG_LOG") != ""
	return funcr.New(func(prefix, args string) {
		if strings.Contains(args, "panic") {
			j.mu.Lock()
			j.panics = append(j.panics, prefix+" "+args)
			j.mu.Unlock()
		}
		if loud && strings.Contains(args, `"error"=`) {
			fmt.Println(prefix, args)
		}
	}, funcr.Options{LogTimestamp: true})
}

func (j *journal) verdict() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.panics {
		fmt.Fprintln(os.Stderr, "an operator panicked:", p)
	}
	return min(1, len(j.panics))
}
