package rig_test

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var (
	plane *controlplane.ControlPlane
	// slow is how many times its usual time everything may take: RIG_SLOW.
	slow = 1.0
)

func TestMain(m *testing.M) {
	var loud io.Writer
	if os.Getenv("RIG_LOG") != "" {
		loud = os.Stdout
	}
	if text := os.Getenv("RIG_SLOW"); text != "" {
		var err error
		if slow, err = strconv.ParseFloat(text, 64); err != nil {
			fmt.Fprintln(os.Stderr, "RIG_SLOW:", err)
			os.Exit(1)
		}
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
