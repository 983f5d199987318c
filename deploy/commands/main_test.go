package commands_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var plane *controlplane.ControlPlane // what TestMain hands to the tests

// The shells of the pages run this program in place of kubectl.
func TestMain(m *testing.M) {
	if os.Getenv(resultsFile) != "" {
		if err := typed(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) { plane = cp }))
}
