package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/images"
)

// kindCluster is the name of the kind cluster; Down deletes no other.
const kindCluster = "tidb-groups"

// kindConfig is three workers in three zones.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
- role: worker
  labels: {topology.kubernetes.io/zone: zone-a}
- role: worker
  labels: {topology.kubernetes.io/zone: zone-b}
- role: worker
  labels: {topology.kubernetes.io/zone: zone-c}
`

// kind is a cluster of containers on a Docker engine.
type kind struct {
	options    Options
	kubeconfig string
}

func newKind(o Options) (Provider, error) {
	var missing []string
	for _, program := range []string{"docker", "kind"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("PROVIDER=kind needs %s on PATH: install it, or use PROVIDER=local (root, no Docker) or PROVIDER=kubeconfig", strings.Join(missing, " and "))
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find cache directory: %w", err)
	}
	return &kind{options: o, kubeconfig: filepath.Join(dir, "tidb-groups", "kind.kubeconfig")}, nil
}

func (k *kind) Name() string       { return Kind }
func (k *kind) Kubeconfig() string { return k.kubeconfig }
func (k *kind) Registry() string   { return "" }

func (k *kind) Up(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "docker", "info").CombinedOutput(); err != nil {
		return fmt.Errorf("PROVIDER=kind needs a running Docker engine: %w: %s", err, lastLine(out))
	}
	names, err := exec.CommandContext(ctx, "kind", "get", "clusters").Output()
	if err != nil {
		return fmt.Errorf("list kind clusters: %w", err)
	}
	if !containsLine(string(names), kindCluster) {
		create := exec.CommandContext(ctx, "kind", "create", "cluster", "--name", kindCluster, "--kubeconfig", k.kubeconfig, "--config", "-")
		create.Stdin = strings.NewReader(kindConfig)
		if err := k.run(create); err != nil {
			return fmt.Errorf("create kind cluster: %w", err)
		}
	} else if err := k.run(exec.CommandContext(ctx, "kind", "export", "kubeconfig", "--name", kindCluster, "--kubeconfig", k.kubeconfig)); err != nil {
		return fmt.Errorf("export kubeconfig of kind: %w", err)
	}
	archives, err := images.Build(ctx, k.options.sets()...)
	if err != nil {
		return err
	}
	for _, a := range archives {
		if err := k.run(exec.CommandContext(ctx, "kind", "load", "image-archive", "--name", kindCluster, a.Path)); err != nil {
			return fmt.Errorf("load %s into kind: %w", a.Ref, err)
		}
	}
	return nil
}

func (k *kind) Down(ctx context.Context) error {
	if err := k.run(exec.CommandContext(ctx, "kind", "delete", "cluster", "--name", kindCluster, "--kubeconfig", k.kubeconfig)); err != nil {
		return fmt.Errorf("delete kind cluster: %w", err)
	}
	return nil
}

// run runs a command and shows what it says.
func (k *kind) run(c *exec.Cmd) error {
	c.Stdout, c.Stderr = k.options.Out, k.options.Out
	return c.Run()
}

// kubeconfig is any cluster that a kubeconfig reaches.
type kubeconfig struct {
	options        Options
	path, registry string
}

func newKubeconfig(o Options) (Provider, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return nil, errors.New("PROVIDER=kubeconfig needs KUBECONFIG to name the file that reaches the cluster: export KUBECONFIG=~/.kube/config")
	}
	registry := os.Getenv("REGISTRY")
	if registry == "" {
		return nil, errors.New("PROVIDER=kubeconfig needs REGISTRY, a registry that you may push to and the cluster may pull from: export REGISTRY=registry.example.com/me")
	}
	return &kubeconfig{options: o, path: path, registry: strings.TrimSuffix(registry, "/")}, nil
}

func (k *kubeconfig) Name() string       { return Kubeconfig }
func (k *kubeconfig) Kubeconfig() string { return k.path }
func (k *kubeconfig) Registry() string   { return k.registry }

// Up pushes the images that are built here. The cluster is the user's own.
func (k *kubeconfig) Up(ctx context.Context) error {
	archives, err := images.Build(ctx, k.options.sets()...)
	if err != nil {
		return err
	}
	for _, a := range archives {
		if err := images.Push(ctx, a, k.registry); err != nil {
			return err
		}
	}
	return nil
}

// Down leaves the user's cluster alone.
func (k *kubeconfig) Down(context.Context) error { return nil }

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func containsLine(text, line string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
