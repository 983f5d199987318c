package issuance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
)

// counted counts what an API server without Secrets is asked for.
type counted struct {
	client.Reader
	names map[string]int
}

func (c counted) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	c.names[key.Name]++
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

// The operator of PDGroups looks at its own Secrets as a group, and as who makes them.
func TestSEC01ASecretIsReadOnceForTheGroupAndItsIssuance(t *testing.T) {
	api := counted{names: map[string]int{}}
	store := credentials.New(time.Now)
	reader := NewReader(api, store, time.Now)
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a-pd", UID: "pd"}}
	pd.Spec.TLS = &v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
	look := func() Observed {
		_, err := store.Observe(t.Context(), api, pd, pd)
		require.NoError(t, err)
		o, err := reader.Read(t.Context(), pd, []v1alpha1.Group{pd})
		require.NoError(t, err)
		return o
	}
	once := map[string]int{"a-pd-cluster-secret": 1, "a-cluster-client-secret": 1, "a-pd-ca-secret": 1}
	first := look()
	assert.Equal(t, once, api.names)
	assert.Same(t, first.judged, look().judged, "what was not read again is not verified again")
	assert.Equal(t, once, api.names, "nor again at once")
	reader.Forget(pd)
	assert.NotSame(t, first.judged, look().judged)
	assert.Equal(t, map[string]int{"a-pd-cluster-secret": 2, "a-cluster-client-secret": 2, "a-pd-ca-secret": 2}, api.names, "what was written is read again")
}
