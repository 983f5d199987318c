package controller

import (
	"os"
	"testing"

	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// rig is what TestMain hands to the tests: an API server with the CRDs.
// Each test runs the operator in a namespace of its own, and plays
// everybody else.
var rig *stage.Server

func TestMain(m *testing.M) {
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}
