package operator

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

func TestARowOfTheComponentTableNamesItsMissingField(t *testing.T) {
	assert.NoError(t, checkComponentTable(v1alpha1.ComponentTable()))
	for field, leaveOut := range map[string]func(*v1alpha1.ComponentInfo){
		"Kind":      func(c *v1alpha1.ComponentInfo) { c.Kind = "" },
		"Component": func(c *v1alpha1.ComponentInfo) { c.Component = "" },
		"Resource":  func(c *v1alpha1.ComponentInfo) { c.Resource = "" },
		"Rollout":   func(c *v1alpha1.ComponentInfo) { c.Rollout = 0 },
		"New":       func(c *v1alpha1.ComponentInfo) { c.New = nil },
		"NewList":   func(c *v1alpha1.ComponentInfo) { c.NewList = nil },
		"Entries":   func(c *v1alpha1.ComponentInfo) { c.Entries = nil },
	} {
		table := v1alpha1.ComponentTable()
		leaveOut(&table[1])
		kind := "TiKVGroup"
		if field == "Kind" {
			kind = ""
		}
		assert.EqualError(t, checkComponentTable(table), `row 2 of v1alpha1.ComponentTable, kind "`+kind+`": field `+field+` is not set`)
	}
}

// serving is an API server that has all kinds but some.
func serving(without ...string) served {
	return func(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
		out := &metav1.APIResourceList{GroupVersion: groupVersion}
		for _, kind := range v1alpha1.Kinds() {
			left := true
			for _, w := range without {
				left = left && w != kind
			}
			if left {
				out.APIResources = append(out.APIResources, metav1.APIResource{Kind: kind})
			}
		}
		return out, nil
	}
}

func TestEveryMissingKindIsNamed(t *testing.T) {
	missing, err := missingCRDs(t.Context(), serving())
	require.NoError(t, err)
	assert.Empty(t, missing)

	missing, err = missingCRDs(t.Context(), serving(v1alpha1.KindBackupSchedule, v1alpha1.KindTiKVGroup))
	require.NoError(t, err)
	assert.Equal(t, []string{"tikvgroups.groups.tidb.dev", "backupschedules.groups.tidb.dev"}, missing)

	missing, err = missingCRDs(t.Context(), func(context.Context, string) (*metav1.APIResourceList, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	})
	require.NoError(t, err)
	assert.Len(t, missing, len(v1alpha1.Kinds()))

	_, err = missingCRDs(t.Context(), func(context.Context, string) (*metav1.APIResourceList, error) {
		return nil, errors.New("no route to host")
	})
	require.EqualError(t, err, "no route to host")
}

func TestTheCheckOfCRDsPassesWhenTheAPIServerDoesNotAnswer(t *testing.T) {
	line := len(logs.after(0))
	require.NoError(t, checkCRDs(t.Context(), &rest.Config{Host: "127.0.0.1:1"}))
	assert.Contains(t, logs.after(line), "the API server does not say which kinds are installed")
}

// Without a CRD that it reads no more than others, an operator stops at once and says so;
// it starts when a user has installed it.
func TestAnOperatorStopsAndNamesAMissingKind(t *testing.T) {
	ask, err := discovery.NewDiscoveryClientForConfig(access)
	require.NoError(t, err)
	missing := func() []string {
		out, err := missingCRDs(t.Context(), ask.ServerResourcesForGroupVersionWithContext)
		require.NoError(t, err)
		return out
	}
	const name = "ticdcgroups.groups.tidb.dev"
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	require.NoError(t, api.Get(t.Context(), client.ObjectKey{Name: name}, crd))
	again := crd.DeepCopy()
	again.SetResourceVersion("")
	require.NoError(t, api.Delete(t.Context(), crd))
	restore := func() {
		require.Eventually(t, func() bool { // not while the old one is being deleted
			err := api.Create(context.Background(), again.DeepCopy())
			return err == nil || apierrors.IsAlreadyExists(err) && len(missing()) == 0
		}, timeout, tick)
		require.Eventually(t, func() bool { return len(missing()) == 0 }, timeout, tick)
	}
	defer restore()
	require.Eventually(t, func() bool { return len(missing()) == 1 }, timeout, tick)

	namespace := controlplane.CreateNamespace(t, api)
	flags, err := Parse("lacking", []string{"--namespaces=" + namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for _, shard := range []string{"", "a"} { // it ends by itself, not with the context
		if flags.Shard = shard; shard != "" {
			flags.Namespaces = ""
		}
		assert.EqualError(t, Run(ctx, access, NewProgram((&toy{}).definition("lacking")), flags),
			"these CRDs are not installed: "+name+". Every operator needs all of deploy/crds, whichever operators run: "+
				"apply that directory, or your overlay, and this operator starts by itself")
		assert.NoError(t, ctx.Err())
	}
	restore()
	run(t, namespace, "lacking")
	create(t, namespace, "a")
	isReady(t, namespace, "a")
}
