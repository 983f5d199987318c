package index

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

const timeout = time.Minute

// access is the control plane's.
var access *rest.Config

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{CRDPaths: []string{"../../deploy/crds"}}, func(cp *controlplane.ControlPlane) {
		access = cp.Config
	}))
}

// counted counts the objects that a selector is asked about.
type counted struct {
	labels.Selector
	asked *int
}

func (c counted) Matches(l labels.Labels) bool {
	*c.asked++
	return c.Selector.Matches(l)
}

// A List of one cluster looks at no object of another one.
func TestAListLooksAtItsOwnClusterOnly(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	api, err := client.New(access, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}}))
	for n := range 5 {
		cluster := fmt.Sprintf("c%d", n)
		for _, component := range []string{"pd", "tikv"} {
			require.NoError(t, api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: cluster + component, Labels: map[string]string{
				v1alpha1.LabelCluster: cluster + "-pd", v1alpha1.LabelGroup: cluster + "-" + component, v1alpha1.LabelInstance: cluster + "-" + component + "-0", "all": "yes",
			}}}))
		}
		require.NoError(t, api.Create(t.Context(), tikv(cluster)))
	}
	c, err := New(access, cache.Options{Scheme: scheme})
	require.NoError(t, err)
	for _, watched := range []client.Object{metadata("ConfigMap"), metadata("ConfigMap"), &v1alpha1.TiKVGroup{}} {
		_, err := c.GetInformer(t.Context(), watched, cache.BlockUntilSynced(false))
		require.NoError(t, err, "also if two controllers watch it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	require.True(t, c.WaitForCacheSync(ctx))

	for name, s := range map[string]struct {
		labels        map[string]string
		namespace     string
		found, looked int
	}{
		"a cluster":                  {map[string]string{v1alpha1.LabelCluster: "c3-pd"}, "many", 2, 2},
		"a group":                    {map[string]string{v1alpha1.LabelCluster: "c3-pd", v1alpha1.LabelGroup: "c3-tikv"}, "many", 1, 1},
		"an Instance":                {map[string]string{v1alpha1.LabelInstance: "c3-tikv-0"}, "many", 1, 1},
		"a group of another cluster": {map[string]string{v1alpha1.LabelCluster: "c2-pd", v1alpha1.LabelGroup: "c3-tikv"}, "many", 0, 1},
		"a cluster that is not":      {map[string]string{v1alpha1.LabelCluster: "c9-pd"}, "many", 0, 0},
		"no label of ours":           {map[string]string{"all": "yes"}, "many", 10, 10},
		"a cluster in no namespace":  {map[string]string{v1alpha1.LabelCluster: "c3-pd"}, "", 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked, list := 0, &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
			require.NoError(t, c.List(t.Context(), list, client.InNamespace(s.namespace),
				client.MatchingLabelsSelector{Selector: counted{labels.SelectorFromSet(s.labels), &asked}}))
			assert.Len(t, list.Items, s.found)
			if s.namespace != "" {
				assert.Equal(t, s.looked, asked)
			}
		})
	}
	groups := func(options ...client.ListOption) []string {
		var list v1alpha1.TiKVGroupList
		require.NoError(t, c.List(t.Context(), &list, options...))
		var out []string
		for _, g := range list.Items {
			out = append(out, g.Name)
		}
		return out
	}
	assert.Equal(t, []string{"c3-tikv"}, groups(client.InNamespace("many"), OfPDGroup("c3-pd")))
	assert.Len(t, groups(client.InNamespace("many"), OfPDGroup("")), 5)
	assert.Equal(t, []string{"c3-tikv"}, groups(client.InNamespace("many"), OfTidbCluster("c3")))
	assert.Len(t, groups(OfPDGroup("c3-pd")), 5, "without a namespace the index is not used")

	t.Run("what is not watched is listed without", func(t *testing.T) {
		var list corev1.ConfigMapList
		require.NoError(t, c.List(ctx, &list, client.InNamespace("many"), client.MatchingLabels{v1alpha1.LabelCluster: "c3-pd"}))
		assert.Len(t, list.Items, 2)
	})
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return out
}

func tikv(cluster string) *v1alpha1.TiKVGroup {
	out := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: cluster + "-tikv"}}
	out.Spec.PDGroup.Name = cluster + "-pd"
	out.Spec.Version = "v8.5.7"
	out.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
	return out
}

func TestTheTidbClustersOfAGroupAreFound(t *testing.T) {
	controlledBy := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
	for name, c := range map[string]struct {
		group string
		owner []metav1.OwnerReference
		want  []string
	}{
		"of a name with dashes":          {"a-b-pd", nil, []string{"a", "a-b"}},
		"of a name without a dash":       {"pd", nil, nil},
		"of one that names it otherwise": {"pd", controlledBy(v1alpha1.KindTidbCluster, "a"), []string{"a"}},
		"once":                           {"a-pd", controlledBy(v1alpha1.KindTidbCluster, "a"), []string{"a"}},
		"of another owner":               {"pd", controlledBy("Deployment", "a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, TidbClusters(&v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: c.group, OwnerReferences: c.owner}}))
		})
	}
}
