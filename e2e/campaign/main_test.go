package campaign

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const crds = "../../deploy/crds"

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	// Operators that are killed have much to complain of.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{CRDPaths: []string{crds}, ControllerManager: true},
		func(cp *controlplane.ControlPlane) { plane = cp }))
}
