package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/images"
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

// bringUp brings everything up and shows it.
func bringUp(ctx context.Context, out *os.File) error {
	began := time.Now()
	options := provider.FromEnvironment(out)
	p, err := provider.New(options)
	if err != nil {
		return err
	}
	if err := p.Up(ctx); err != nil {
		return err
	}
	loaded := time.Now()
	printMessage(out, "Kubernetes runs and has the images (%s)", elapsedSince(began))
	s, err := session.New(ctx, p.Kubeconfig())
	if err != nil {
		return err
	}
	if err := s.Install(ctx, p.Registry()); err != nil {
		return err
	}
	printMessage(out, "operators are applied: kubectl apply -k deploy/overlays/default")
	if err := applySample(ctx, out, s, options.Version()); err != nil {
		return err
	}
	applied := time.Now()

	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not everything was Ready within %s", readyTimeout))
	defer cancel()
	show := newScreen(out)
	var last []*tree.Node
	err = s.Follow(ctx, namespace, func(nodes []*tree.Node) bool {
		last = nodes
		show.draw(nodes, time.Since(applied))
		return len(nodes) > 0 && tree.IsAllGood(nodes)
	})
	if err != nil {
		printMessage(out, "%s", tree.Draw(last, tree.Style{}))
		return fmt.Errorf("%w; the lines above that begin with ✗ or ◌ say what is missing; next: %s", err, kubectlHint(s, p, "get tidb-all -A"))
	}
	if !show.live {
		printMessage(out, "%s", strings.TrimRight(tree.Draw(last, tree.Style{}), "\n"))
	}
	printMessage(out, "\nEverything is Ready: %s after it was applied, %s after the images were loaded.", elapsedSince(applied), elapsedSince(loaded))
	return printNextSteps(ctx, out, s, p, options.Images)
}

// applySample applies the sample, with a version of its own if there is one.
func applySample(ctx context.Context, out *os.File, s *session.Session, version string) error {
	text, err := os.ReadFile(filepath.Join(s.Root, sample))
	if err != nil {
		return fmt.Errorf("read sample: %w", err)
	}
	said := "kubectl apply -f " + sample
	if version != "" && version != images.DefaultVersion {
		text = []byte(strings.ReplaceAll(string(text), "version: "+images.DefaultVersion, "version: "+version))
		said = fmt.Sprintf("sed s/%s/%s/ %s | kubectl apply -f -", images.DefaultVersion, version, sample)
	}
	var there v1alpha1.TidbCluster
	err = s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster}, &there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for a TidbCluster: %w", err)
	}
	if have := there.Spec.Version; err == nil && version != "" && have != version {
		return fmt.Errorf("a demo with the images of version %s runs already, and this one has version %s: make demo-down, then run this command again", have, version)
	}
	if _, err := s.KubectlInput(ctx, string(text), "apply", "-n", namespace, "-f", "-"); err != nil {
		return err
	}
	printMessage(out, "a TidbCluster is applied: %s", said)
	return nil
}

// printNextSteps shows that SQL is answered, and says what can be done now.
func printNextSteps(ctx context.Context, out *os.File, s *session.Session, p provider.Provider, loaded string) error {
	var service corev1.Service
	if err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster + "-tidb"}, &service); err != nil {
		return fmt.Errorf("get Service %s-tidb: %w", cluster, err)
	}
	switch {
	case loaded == provider.StandIns:
		printMessage(out, "The database is a stand-in: it speaks the protocols, and keeps nothing.")
	case loaded != provider.Upstream:
		printMessage(out, "PD and TiDB are the real ones, built from source; TiKV is a small one of ours that replicates by Raft, a test double; TiFlash is a stand-in, without tables.")
	}
	if p.Name() == provider.Local { // elsewhere, Services are not reached from here
		answer, err := session.Ask(ctx, session.Login(net.JoinHostPort(service.Spec.ClusterIP, "4000")), "SELECT tidb_version()")
		if err != nil {
			return fmt.Errorf("%w; next: %s", err, kubectlHint(s, p, "get tidb -A"))
		}
		printMessage(out, "  SELECT tidb_version() answers:\n    %s", strings.ReplaceAll(strings.TrimSpace(answer), "\n", "\n    "))
	}
	printMessage(out, "  connect:  mysql -h %s -P 4000 -u root", service.Spec.ClusterIP)
	printMessage(out, "  look:     %s", kubectlHint(s, p, "get tidb-all"))
	printMessage(out, "  stop:     make demo-down")
	return nil
}

func kubectlHint(s *session.Session, p provider.Provider, args string) string {
	return fmt.Sprintf("KUBECONFIG=%s %s %s", p.Kubeconfig(), s.KubectlPath(), args)
}

func elapsedSince(t time.Time) string { return time.Since(t).Round(100 * time.Millisecond).String() }

// printMessage prints a line; a terminal that is gone is no loss.
func printMessage(out *os.File, format string, args ...any) {
	_, err := fmt.Fprintf(out, format+"\n", args...)
	if errors.Is(err, os.ErrClosed) {
		return
	}
}
