package bench

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fresh is how long a kind counts as just made: for the API server lets every creation of an
// object of such a kind wait for two seconds, and tells of whole seconds.
const fresh = 3 * time.Second

// awaitKinds waits until no kind of an API server counts as just made. On a new control plane
// a cluster would else take two seconds longer in some runs, whatever the operators do.
func awaitKinds(ctx context.Context, config *rest.Config) error {
	c, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("look at the kinds: %w", err)
	}
	kinds, err := c.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the kinds: %w", err)
	}
	return waitFor(ctx, establishDelay(kinds.Items, time.Now()))
}

// establishDelay is for how long one of the kinds still counts as just made.
func establishDelay(kinds []apiextensionsv1.CustomResourceDefinition, now time.Time) time.Duration {
	var left time.Duration
	for _, kind := range kinds {
		for _, c := range kind.Status.Conditions {
			if c.Type == apiextensionsv1.Established {
				left = max(left, fresh-now.Sub(c.LastTransitionTime.Time))
			}
		}
	}
	return left
}
