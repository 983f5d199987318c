package rig_test

import (
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
	os.Exit(rig.Main(m, loud, func(cp *controlplane.ControlPlane) { plane = cp }))
}
