package rig_test

import (
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var (
	plane *controlplane.ControlPlane
	// kubectl is what all tests of the package have shown that it takes.
	kubectl = rig.NewKubectl()
)

func TestMain(m *testing.M) {
	os.Exit(rig.Main(m, rig.Loud(), func(cp *controlplane.ControlPlane) { plane = cp }))
}
