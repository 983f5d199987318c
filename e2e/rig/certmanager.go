package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// CertManagerNamespace is where the CAs of ClusterIssuers are.
const CertManagerNamespace = "cert-manager"

// startCertManager has the real controllers of cert-manager look after a namespace until the
// context ends, or after all and ClusterIssuers if none is named. Its webhook, which judges what
// people write, does not run.
func startCertManager(ctx context.Context, plane *controlplane.ControlPlane, namespace string) error {
	program, err := binaries.Path(ctx, "cert-manager")
	if err != nil {
		return err
	}
	crds, err := certManagerCRDs(ctx)
	if err != nil {
		return err
	}
	// Another test that has waited for the same program installs them in the same moment.
	isTaken := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	if err := retry.OnError(retry.DefaultBackoff, isTaken, func() error {
		_, err := envtest.InstallCRDs(plane.Config, envtest.CRDInstallOptions{Paths: crds, ErrorIfPathMissing: true})
		return err
	}); err != nil {
		return fmt.Errorf("install the CRDs of cert-manager: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "-kubeconfig", plane.Kubeconfig, "-namespace", namespace, "-cluster-resource-namespace", CertManagerNamespace) //nolint:gosec // built by the test kit
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start cert-manager: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it is killed when the rig ends
	return nil
}

// certManagerCRDs are the files of the CRDs that belong to the program.
func certManagerCRDs(ctx context.Context) ([]string, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, fmt.Errorf("find the CRDs of cert-manager: %w", err)
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir = filepath.Join(root, "shared", "tools", "cert-manager")
	list.Env = append(list.Environ(), "GOWORK=off")
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find the CRDs of cert-manager: %w", err)
	}
	var out []string
	for _, kind := range []string{"certificates", "certificaterequests", "issuers", "clusterissuers"} {
		out = append(out, filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_"+kind+".yaml"))
	}
	return out, nil
}
