//go:build e2e

package suite_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/images"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/session"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

const (
	// upTimeout bounds starting Kubernetes and building images, the first time with all
	// their programs.
	upTimeout = 40 * time.Minute
	// readyTimeout bounds the way from applied to Ready.
	readyTimeout = 3 * time.Minute
	// rollTimeout bounds a restart of all TiKV and TiDB: each TiDB that stops waits half a
	// minute for its clients.
	rollTimeout = 2 * readyTimeout
	// mostNamespaces is more than the tests have.
	mostNamespaces = 32
)

// world is what the tests share: one cluster with the operators installed.
type world struct {
	provider provider.Provider
	session  *session.Session
	// real says that the real database's images are there.
	real bool
	// temporary says that the cluster of nodes is removed in the end, with all that is in it.
	temporary bool
	// left are the namespaces that are being deleted, which must come to an end.
	left chan string
}

var shared world

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
	defer cancel()
	options := provider.FromEnvironment(os.Stdout)
	options.Extra = extra(options)
	p, err := provider.New(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	temporary := os.Getenv("KEEP") == ""
	if temporary {
		// A run that was killed has left its cluster, maybe in the middle of
		// something: nothing of it is to be taken for this run's.
		if err := p.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: remove what an earlier run left:", err)
			return 1
		}
		defer func() {
			if err := p.Down(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, "e2e: stop the cluster:", err)
			}
		}()
	}
	if err := p.Up(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	s, err := session.New(ctx, p.Kubeconfig())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	if err := s.Install(ctx, p.Registry(), components()...); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	shared = world{
		provider: p, session: s, real: options.Version() == binaries.Release,
		temporary: temporary && p.Name() == provider.Local, left: make(chan string, mostNamespaces),
	}
	code := m.Run()
	close(shared.left)
	for name := range shared.left {
		if err := awaitGone(name); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = 1
		}
	}
	return code
}

// awaitGone waits until a namespace that is being deleted is gone.
func awaitGone(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if _, err := shared.session.Kubectl(ctx, "wait", "--for=delete", "namespace/"+name, "--timeout=120s"); err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// isFull says whether everything is to run, and not only the core.
func isFull() bool { return os.Getenv("FULL") != "" }

// components are what the operators are installed with: those of every scenario.
func components() []string {
	if isFull() {
		return []string{"tls", "tls-self-signed"}
	}
	return nil
}

// extra are the images that tests of the real database need besides it: most tests
// run on stand-ins, whose version is another one.
func extra(o provider.Options) []string {
	if o.Version() != binaries.Release {
		return nil
	}
	if isFull() {
		return append(images.OwnSets(), images.SetStandins, images.SetOlder, images.SetBackup)
	}
	return []string{images.SetStandins}
}

// namespace makes a namespace for a test and deletes it afterwards, for whose end nothing waits
// but the end of all tests; when the test failed, it says first how everything stood.
func namespace(t *testing.T, name string) string {
	t.Helper()
	create(t, name)
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), describeLimit)
			defer cancel()
			describe(ctx, t, name)
		}
		_, err := shared.session.Kubectl(context.WithoutCancel(t.Context()), "delete", "namespace", name, "--wait=false")
		assert.NoError(t, err, "delete namespace")
		shared.left <- name
	})
	return name
}

// create makes a namespace, without what an earlier run left in it.
func create(t *testing.T, name string) {
	t.Helper()
	_, err := shared.session.Kubectl(t.Context(), "delete", "namespace", name, "--ignore-not-found", "--wait=true", "--timeout=120s")
	require.NoError(t, err)
	_, err = shared.session.Kubectl(t.Context(), "create", "namespace", name)
	require.NoError(t, err)
}

// remove deletes a namespace, if one is named.
func remove(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), readyTimeout)
	defer cancel()
	_, err := shared.session.Kubectl(ctx, "delete", "namespace", name, "--wait=true", "--timeout=120s")
	assert.NoError(t, err, "delete namespace")
}

// describe prints how a namespace stands.
func describe(ctx context.Context, t *testing.T, namespace string) {
	nodes, err := shared.session.Trees(ctx, namespace)
	t.Logf("trees of %s (%v):\n%s", namespace, err, tree.Draw(nodes, tree.Style{}))
	for _, args := range [][]string{
		{"get", "nodes", "-o", "wide"},
		{"get", "pods,pvc,svc,endpointslices", "-n", namespace, "-o", "wide"},
		{"describe", "tidbclusters,pdgroups,tikvgroups,tidbgroups,tiflashgroups,instances", "-n", namespace, "--show-events=false"},
		{"describe", "pods", "-n", namespace, "--show-events=false"},
		{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
		{"get", "pods", "-n", session.Namespace, "-o", "wide"},
		{"logs", "-n", namespace, "-l", "app.kubernetes.io/managed-by=tidb-groups", "--all-containers", "--tail=30", "--prefix"},
		{"logs", "-n", session.Namespace, "-l", "app.kubernetes.io/part-of=tidb-groups", "--tail=20", "--prefix"},
	} {
		out, err := shared.session.Kubectl(ctx, args...)
		t.Logf("kubectl %v (%v):\n%s", args, err, out)
	}
}

// apply applies a file to a namespace.
func apply(t *testing.T, namespace, file string) {
	t.Helper()
	if _, err := shared.session.Kubectl(t.Context(), "apply", "-n", namespace, "-f", file); err != nil {
		t.Fatal(err)
	}
}

// awaitAll waits until the namespace has n trees and everything in them is
// Ready and UpToDate.
func awaitAll(t *testing.T, namespace string, n int) []*tree.Node {
	t.Helper()
	var last []*tree.Node
	await(t, namespace, fmt.Sprintf("%d trees, all Ready", n), func(nodes []*tree.Node) bool {
		last = nodes
		return len(nodes) == n && tree.IsAllGood(nodes)
	})
	return last
}

// describeLimit bounds how long a failed test looks at what it failed on.
const describeLimit = time.Minute

// await follows a namespace until its trees are as wished. If they do not become
// so, it says how everything stood then, and not only after what a test still does
// to end.
func await(t *testing.T, namespace, wish string, good func([]*tree.Node) bool) {
	t.Helper()
	awaitWithin(t, readyTimeout, namespace, wish, good)
}

// awaitWithin is await with another bound.
func awaitWithin(t *testing.T, limit time.Duration, namespace, wish string, good func([]*tree.Node) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("not within %s: %s", limit, wish))
	defer cancel()
	if err := shared.session.Follow(ctx, namespace, good); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeLimit)
		defer cancel()
		describe(ctx, t, namespace)
		t.Fatal(err)
	}
}

// part is a piece of a test that needs what the pieces before it left.
type part struct {
	name string
	run  func(*testing.T)
}

// inTurn runs parts one after the other until one fails: what follows would only
// tell of a cluster that is broken already.
func inTurn(t *testing.T, parts []part) {
	t.Helper()
	for _, p := range parts {
		if !t.Run(p.name, p.run) {
			t.FailNow()
		}
	}
}

// find returns the node of a kind and name.
func find(nodes []*tree.Node, kind, name string) *tree.Node {
	for _, n := range nodes {
		if n.Kind == kind && n.Name == name {
			return n
		}
		if below := find(n.Children, kind, name); below != nil {
			return below
		}
	}
	return nil
}
