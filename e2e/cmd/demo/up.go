package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/session"
)

const (
	// readyTimeout bounds the way from applied to Ready.
	readyTimeout = 5 * time.Minute
	namespace    = "default"
	cluster      = "basic"
	sample       = "deploy/samples/basic.yaml"
)

// up brings everything up and shows it.
func up(ctx context.Context, out *os.File) error {
	began := time.Now()
	p, err := provider.New(provider.FromEnvironment(out))
	if err != nil {
		return err
	}
	if err := p.Up(ctx); err != nil {
		return err
	}
	loaded := time.Now()
	say(out, "Kubernetes runs and has the images (%s)", since(began))
	s, err := session.New(ctx, p.Kubeconfig())
	if err != nil {
		return err
	}
	if err := s.Install(ctx, p.Registry()); err != nil {
		return err
	}
	say(out, "operators are applied: kubectl apply -k deploy/overlays/default")
	if _, err := s.Kubectl(ctx, "apply", "-n", namespace, "-f", sample); err != nil {
		return err
	}
	applied := time.Now()
	say(out, "a TidbCluster is applied: kubectl apply -f %s", sample)

	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not everything was Ready within %s", readyTimeout))
	defer cancel()
	show := newScreen(out)
	var last []*tree.Node
	err = s.Follow(ctx, namespace, func(nodes []*tree.Node) bool {
		last = nodes
		show.draw(nodes, time.Since(applied))
		return len(nodes) > 0 && tree.Done(nodes)
	})
	if err != nil {
		say(out, "%s", tree.Draw(last, tree.Style{}))
		return fmt.Errorf("%w; the lines above that begin with ✗ or ◌ say what is missing; next: %s", err, kubectlHint(s, p, "get tidb-all -A"))
	}
	if !show.live {
		say(out, "%s", strings.TrimRight(tree.Draw(last, tree.Style{}), "\n"))
	}
	return goodbye(ctx, out, s, p, applied, loaded)
}

// goodbye says what can be done now.
func goodbye(ctx context.Context, out *os.File, s *session.Session, p provider.Provider, applied, loaded time.Time) error {
	var service corev1.Service
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster + "-tidb"}, &service); err != nil {
		return fmt.Errorf("get Service %s-tidb: %w", cluster, err)
	}
	say(out, "\nEverything is Ready: %s after it was applied, %s after the images were loaded.", since(applied), since(loaded))
	if os.Getenv("IMAGES") != provider.Upstream {
		say(out, "The database is a stand-in: it speaks the protocols, and keeps nothing.")
	}
	say(out, "  connect:  mysql -h %s -P 4000 -u root", service.Spec.ClusterIP)
	say(out, "  look:     %s", kubectlHint(s, p, "get tidb-all"))
	say(out, "  stop:     make demo-down")
	return nil
}

func kubectlHint(s *session.Session, p provider.Provider, args string) string {
	return fmt.Sprintf("KUBECONFIG=%s %s %s", p.Kubeconfig(), s.KubectlPath(), args)
}

func since(t time.Time) string { return time.Since(t).Round(100 * time.Millisecond).String() }

// say prints a line; a terminal that is gone is nobody's loss.
func say(out *os.File, format string, args ...any) {
	_, err := fmt.Fprintf(out, format+"\n", args...)
	if errors.Is(err, os.ErrClosed) {
		return
	}
}
