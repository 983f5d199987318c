package rig_test

import (
	"flag"
	"io"
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var plane *controlplane.ControlPlane

// sideBySide is how many scenarios run at a time, unless -parallel says another number: they
// wait for most of their time.
const sideBySide = "4"

func TestMain(m *testing.M) {
	var loud io.Writer
	if os.Getenv("RIG_LOG") != "" {
		loud = os.Stdout
	}
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", sideBySide)
	}
	os.Exit(rig.Main(m, loud, func(cp *controlplane.ControlPlane) { plane = cp }))
}
