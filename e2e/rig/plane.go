package rig

import (
	"fmt"
	"path/filepath"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// PlaneOptions are what a control plane for rigs needs: the suite's CRDs, and
// the controllers of Kubernetes that are real in a rig.
func PlaneOptions() (controlplane.Options, error) {
	root, err := binaries.Root()
	if err != nil {
		return controlplane.Options{}, fmt.Errorf("find the CRDs: %w", err)
	}
	return controlplane.Options{
		CRDPaths:          []string{filepath.Join(root, "deploy", "crds")},
		ControllerManager: true,
		Controllers:       []string{"disruption-controller", "job-controller", "resourcequota-controller"},
	}, nil
}
