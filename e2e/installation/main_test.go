package installation_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// What TestMain hands to the tests.
var (
	plane   *controlplane.ControlPlane
	journal *rig.Journal
)

func TestMain(m *testing.M) {
	journal = rig.NewJournal(nil)
	options, err := rig.PlaneOptions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(controlplane.Main(m, options, func(cp *controlplane.ControlPlane) { plane = cp }))
}
