package issuance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/operator"
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

// The CA has no owner, so that Argo CD would delete it: see workload.KeepUnowned.
func TestSEC01TheCAOutlivesItsGroup(t *testing.T) {
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a-pd", UID: "pd"}}
	pd.Spec.TLS = &v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
	env := operator.Env{Name: "pdgroup", Client: api, Live: api, Now: time.Now, Recorder: events.NewFakeRecorder(9)}
	NewReader(api, credentials.New(time.Now), time.Now).Act(t.Context(), env, pd, Plan{MakesCA: true})
	var ca corev1.Secret
	require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: v1alpha1.CASecretName(pd)}, &ca))
	assert.Empty(t, ca.OwnerReferences)
	assert.Equal(t, "Prune=false,Delete=false", ca.Annotations["argocd.argoproj.io/sync-options"])
}
