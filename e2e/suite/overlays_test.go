//go:build e2e

package suite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/tree"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/session"
)

const (
	// ours selects what an installation has.
	ours = "app.kubernetes.io/part-of=tidb-groups"
	// notOurs is a namespace that no operator is to act in.
	notOurs = "e2e-not-ours"
)

// The installations beside the default one bring a cluster up in containers, and leave a
// namespace that is not theirs alone: sets of operators, a list of namespaces, and operators
// that have roles in their own namespace and no other right. Parity: SEC-02.
func TestOverlaysInContainers(t *testing.T) {
	if shared.provider.Name() != provider.Local || !isFull() {
		t.Skip("takes the operators of the whole cluster away for minutes: FULL=1, on a cluster of our own")
	}
	t.Cleanup(func() {
		withdraw(t)
		require.NoError(t, shared.session.Install(context.WithoutCancel(t.Context()), shared.provider.Registry(), components()...))
	})
	t.Run("sets of operators", func(t *testing.T) {
		withdraw(t)
		create(t, notOurs)
		defer remove(t, notOurs)
		create(t, "e2e-shop")
		create(t, "e2e-blog")
		labelShard(t, "e2e-shop", "a")
		labelShard(t, "e2e-blog", "b")
		for _, name := range []string{"shards", "shards/a", "shards/b"} {
			kubectl(t, "apply", "-k", "deploy/overlays/"+name)
		}
		bringUp(t, "e2e-shop", "e2e-blog")
		kubectl(t, "delete", "namespace", "tidb-groups-a", "tidb-groups-b", "--timeout=120s")
	})
	t.Run("a list of namespaces", func(t *testing.T) {
		withdraw(t)
		create(t, notOurs)
		defer remove(t, notOurs)
		create(t, "shop")
		create(t, "blog")
		kubectl(t, "apply", "-k", "deploy/overlays/namespaces")
		bringUp(t, "shop", "blog")
	})
	t.Run("roles of one namespace alone", func(t *testing.T) {
		withdraw(t)
		create(t, notOurs)
		defer remove(t, notOurs)
		create(t, "e2e-own")
		dir, err := os.MkdirTemp(filepath.Join(shared.session.Root, "deploy", "overlays"), ".own-")
		require.NoError(t, err)
		defer func() { assert.NoError(t, os.RemoveAll(dir)) }()
		const own = "namespace: e2e-own\nresources: [../default]\ncomponents: [../../components/namespaced]\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(own), 0o600))
		kubectl(t, "apply", "-k", dir)
		bringUp(t, "e2e-own")
	})
}

// withdraw takes the default installation away, but for the kinds: of two that know nothing of
// each other, both would act.
func withdraw(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "deployment", "-n", session.Namespace, "-l", ours, "--cascade=foreground", "--timeout=120s")
	kubectl(t, "delete", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "-l", ours, "--timeout=120s")
}

// bringUp brings a cluster up in each namespace, and deletes it. Nothing is done for the one
// that is applied first, in a namespace that is not the operators'.
func bringUp(t *testing.T, namespaces ...string) {
	t.Helper()
	apply(t, notOurs, "deploy/samples/basic.yaml")
	for _, ns := range namespaces {
		apply(t, ns, "deploy/samples/basic.yaml")
	}
	for _, ns := range namespaces {
		awaitAll(t, ns, 1)
		query(t, ns)
	}
	var other v1alpha1.TidbCluster
	require.NoError(t, shared.session.Client.Get(t.Context(), types.NamespacedName{Namespace: notOurs, Name: "basic"}, &other))
	assert.Empty(t, other.Status.Conditions)
	assert.Zero(t, instances(t, notOurs))
	for _, ns := range namespaces {
		// First the cluster: the operators may be in the namespace, too.
		kubectl(t, "delete", "-n", ns, "tidbcluster", "basic", "--timeout=150s")
		await(t, ns, "no object left", func(nodes []*tree.Node) bool { return len(nodes) == 0 && instances(t, ns) == 0 })
		remove(t, ns)
	}
}

// labelShard gives a namespace to a set of operators.
func labelShard(t *testing.T, ns, set string) {
	t.Helper()
	kubectl(t, "label", "namespace", ns, v1alpha1.LabelShard+"="+set)
}

// kubectl runs kubectl, which must succeed.
func kubectl(t *testing.T, args ...string) {
	t.Helper()
	_, err := shared.session.Kubectl(context.WithoutCancel(t.Context()), args...)
	require.NoError(t, err)
}
