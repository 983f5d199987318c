package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Session works on one cluster.
type Session struct {
	// Client without a cache.
	Client client.WithWatch
	// Config that reaches the cluster.
	Config *rest.Config
	// Root of the repository.
	Root string

	kubeconfig, kubectl string
	scheme              *runtime.Scheme
}

// New opens a session on the cluster that a kubeconfig reaches.
func New(ctx context.Context, kubeconfig string) (*Session, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster of %s: %w", kubeconfig, err)
	}
	kubectl, err := binaries.Path(ctx, "kubectl")
	if err != nil {
		return nil, err
	}
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	return &Session{Client: c, Config: config, Root: root, kubeconfig: kubeconfig, kubectl: kubectl, scheme: scheme}, nil
}

// KubectlPath is where the session's kubectl is.
func (s *Session) KubectlPath() string { return s.kubectl }

// Kubectl runs kubectl and returns what it printed. An error carries what it
// complained of.
func (s *Session) Kubectl(ctx context.Context, args ...string) (string, error) {
	return s.KubectlInput(ctx, "", args...)
}

// KubectlInput runs kubectl with an input.
func (s *Session) KubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, s.kubectl, args...)
	command.Dir = s.Root
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	command.Stdin = strings.NewReader(input)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}
