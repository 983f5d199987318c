package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// field is the name of the index. Its values are what an object belongs to.
const field = "belongs-to"

// What values of groups begin with, that are no labels.
const (
	pdGroupKey     = "pdGroup"
	tidbClusterKey = "tidbCluster"
)

// indexedLabels are the labels that are indexed, the one that fewest objects share first.
func indexedLabels() []string {
	return []string{v1alpha1.LabelInstance, v1alpha1.LabelGroup, v1alpha1.LabelCluster}
}

// OfPDGroup asks a List for the groups that name a PDGroup, for all if it is empty. A reader
// without the index returns the others too.
type OfPDGroup string

// ApplyToList implements client.ListOption: what has no index does not know it.
func (OfPDGroup) ApplyToList(*client.ListOptions) {}

func (o OfPDGroup) value() string { return formatValue(pdGroupKey, string(o)) }

// OfTidbCluster asks a List for the groups that may matter to a TidbCluster. A reader
// without the index returns the others too.
type OfTidbCluster string

// ApplyToList implements client.ListOption: what has no index does not know it.
func (OfTidbCluster) ApplyToList(*client.ListOptions) {}

func (o OfTidbCluster) value() string { return formatValue(tidbClusterKey, string(o)) }

// TidbClusters are the names of the TidbClusters that a group may matter to: of its owner,
// and of each that gives its groups such names.
func TidbClusters(group client.Object) []string {
	var out []string
	for at, letter := range group.GetName() {
		if letter == '-' {
			out = append(out, group.GetName()[:at])
		}
	}
	owner := metav1.GetControllerOf(group)
	if owner != nil && owner.Kind == v1alpha1.KindTidbCluster && !slices.Contains(out, owner.Name) {
		out = append(out, owner.Name)
	}
	return out
}

// Cache is a cache with the index.
type Cache struct {
	cache.Cache
	scheme *runtime.Scheme

	lock sync.RWMutex
	has  map[kind]bool
}

// kind is what an informer holds: objects of a kind, or their metadata only.
type kind struct {
	schema.GroupVersionKind
	metadata bool
}

// New returns a cache with the index; it is a cache.NewCacheFunc.
func New(config *rest.Config, options cache.Options) (cache.Cache, error) {
	inner, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	return &Cache{Cache: inner, scheme: options.Scheme, has: map[kind]bool{}}, nil
}

// GetInformer implements cache.Informers: what is watched is indexed.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if err := c.index(ctx, object); err != nil {
		return nil, err
	}
	return c.Cache.GetInformer(ctx, object, options...)
}

// index adds the index of a kind once. A kind that is not installed has none until it is
// asked for again.
func (c *Cache) index(ctx context.Context, object client.Object) error {
	of, err := c.kindOf(object)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.has[of] {
		return nil
	}
	if err := c.IndexField(ctx, object, field, indexValues); err != nil {
		return fmt.Errorf("index %s: %w", of.Kind, err)
	}
	c.has[of] = true
	return nil
}

// kindOf is what the informer of an object or a list holds.
func (c *Cache) kindOf(object runtime.Object) (kind, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return kind{}, fmt.Errorf("look up the kind of %T: %w", object, err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return kind{gvk, true}, nil
	}
	return kind{gvk, false}, nil
}

// List implements client.Reader.
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if value := requestedValue(options); value != "" {
		of, err := c.kindOf(list)
		if err != nil {
			return err
		}
		c.lock.RLock()
		has := c.has[of]
		c.lock.RUnlock()
		if has {
			options = append(options[:len(options):len(options)], client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(field, value)})
		}
	}
	return c.Cache.List(ctx, list, options...)
}

// requestedValue is the value of the index that a List asks for, empty if none.
func requestedValue(options []client.ListOption) string {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	if asked.Namespace == "" || asked.FieldSelector != nil {
		return ""
	}
	for _, o := range options {
		if of, ok := o.(interface{ value() string }); ok && o != OfPDGroup("") {
			return of.value()
		}
	}
	return selectorValue(asked.LabelSelector)
}

// selectorValue is the value that a selector of labels asks for.
func selectorValue(selector labels.Selector) string {
	if selector == nil {
		return ""
	}
	for _, label := range indexedLabels() {
		if name, found := selector.RequiresExactMatch(label); found {
			return formatValue(label, name)
		}
	}
	return ""
}

// indexValues are what an object is found by.
func indexValues(object client.Object) []string {
	var out []string
	if g, ok := object.(v1alpha1.Group); ok {
		out = append(out, OfPDGroup(g.PDGroupName()).value())
		for _, name := range TidbClusters(g) {
			out = append(out, OfTidbCluster(name).value())
		}
	}
	has := object.GetLabels()
	for _, label := range indexedLabels() {
		if name, found := has[label]; found {
			out = append(out, formatValue(label, name))
		}
	}
	return out
}

func formatValue(key, name string) string { return key + "=" + name }
