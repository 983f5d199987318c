package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Namespace that the operators run in.
const Namespace = "tidb-groups-system"

// overlay is the kustomization of all operators.
const overlay = "deploy/overlays/default"

// Install applies the operators as the README says, and with components. With a registry,
// their images are taken from it.
func (s *Session) Install(ctx context.Context, registry string, components ...string) error {
	path := overlay
	if registry != "" || len(components) > 0 {
		dir, err := os.MkdirTemp(filepath.Join(s.Root, "deploy", "overlays"), ".own-")
		if err != nil {
			return fmt.Errorf("make overlay: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(ownOverlay(registry, components)), 0o600); err != nil {
			return fmt.Errorf("write overlay: %w", err)
		}
		path = dir
	}
	if _, err := s.Kubectl(ctx, "apply", "-k", path); err != nil {
		return fmt.Errorf("install operators: %w", err)
	}
	if _, err := s.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=120s", "crd", "-l", "app.kubernetes.io/part-of=tidb-groups"); err != nil {
		return fmt.Errorf("wait for the kinds: %w", err)
	}
	return nil
}

// ScaleOperator scales the Deployment of an operator and waits until that is done.
func (s *Session) ScaleOperator(ctx context.Context, operator string, replicas int) error {
	name := operator + "-operator"
	if _, err := s.Kubectl(ctx, "scale", "-n", Namespace, "deployment", name, fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		return err
	}
	if _, err := s.Kubectl(ctx, "rollout", "status", "-n", Namespace, "deployment", name, "--timeout=150s"); err != nil {
		return err
	}
	if replicas > 0 {
		return nil
	}
	// A rollout is over while its last pod still ends, and works.
	_, err := s.Kubectl(ctx, "wait", "-n", Namespace, "--for=delete", "pod", "-l", "app.kubernetes.io/name="+name, "--timeout=150s")
	return err
}

func ownOverlay(registry string, components []string) string {
	text := "resources: [../default]\n"
	if len(components) > 0 {
		text += "components:\n"
	}
	for _, c := range components {
		text += "- ../../components/" + c + "\n"
	}
	if registry == "" {
		return text
	}
	text += "images:\n"
	for _, name := range v1alpha1.Programs() {
		image := "tidb-groups/" + name + "-operator"
		text += fmt.Sprintf("- {name: %s, newName: %s/%s}\n", image, registry, image)
	}
	return text
}
