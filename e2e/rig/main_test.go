package rig_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	var loud io.Writer
	if os.Getenv("RIG_LOG") != "" {
		loud = os.Stdout
	}
	journal := rig.NewJournal(loud)
	options, err := rig.PlaneOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := controlplane.Main(m, options, func(cp *controlplane.ControlPlane) { plane = cp })
	for _, p := range journal.Panics() {
		fmt.Fprintln(os.Stderr, "an operator panicked:", p)
		code = max(code, 1)
	}
	os.Exit(code)
}
