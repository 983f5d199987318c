package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/schema"
)

// checkComponentTable names every field that a row of the table of components lacks. Who leaves one
// out learns it at the start, and not by a call of nil in the middle of something.
func checkComponentTable(table []v1alpha1.ComponentInfo) error {
	var missing []error
	for i, row := range table {
		if err := row.Check(); err != nil {
			missing = append(missing, fmt.Errorf("row %d of v1alpha1.ComponentTable, kind %q: %w", i+1, row.Kind, err))
		}
	}
	return errors.Join(missing...)
}

// served returns what an API server serves of a group and version.
type served func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// checkCRDs asks once which kinds the API server knows, and names every CRD of the suite
// that is missing or older. A watch of a missing kind would ask again without end, and a cache would
// say that there are no such objects. A status with a field that the CRD lacks is refused as a whole.
func checkCRDs(ctx context.Context, cfg *rest.Config) error {
	ask, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("build client that asks which kinds are installed: %w", err)
	}
	missing, err := missingCRDs(ctx, ask.ServerResourcesForGroupVersionWithContext)
	switch {
	case err != nil: // the caches wait for an API server that does not answer, as they do at any other time
		ctrl.Log.Info("the API server does not say which kinds are installed", "error", err.Error())
		return nil
	case len(missing) > 0:
		return fmt.Errorf("these CRDs are not installed: %s. Every operator needs all of deploy/crds, whichever operators run: "+
			"apply that directory, or your overlay, and this operator starts by itself", strings.Join(missing, ", "))
	}
	schemas, err := schema.Read(ctx, ask.RESTClient())
	if err != nil { // as above, and where the CRDs are a moment old
		ctrl.Log.Info("the API server does not say which fields the CRDs have", "error", err.Error())
		return nil
	}
	older, err := schema.FindOlder(schemas)
	if err != nil || len(older) == 0 {
		return err
	}
	return fmt.Errorf("these CRDs are older than this operator: %s. Apply deploy/crds of its version, "+
		"and this operator starts by itself", strings.Join(older, ", "))
}

// missingCRDs returns the names of the CRDs of the suite that are not installed, in the
// order of the documents.
func missingCRDs(ctx context.Context, ask served) ([]string, error) {
	resources, err := ask(ctx, v1alpha1.GroupVersion().String())
	if apierrors.IsNotFound(err) { // none is
		resources, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, r := range resources.APIResources {
		has[r.Kind] = true
	}
	var out []string
	for _, kind := range v1alpha1.Kinds() {
		if !has[kind] {
			plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion().WithKind(kind))
			out = append(out, plural.GroupResource().String())
		}
	}
	return out, nil
}
