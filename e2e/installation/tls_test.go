package installation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/issuance"
)

// secured are the operators as a component installs them, and a namespace for a cluster.
func secured(t *testing.T, name, component string) (*installed, *rig.Test) {
	t.Helper()
	var in *installed
	with := options(name)
	with.ClusterWide, with.CertManager = true, component == "tls-issuer"
	with.Installed = func(ctx context.Context, name string) (rig.Process, error) { return in.process(ctx, name) }
	r := rig.New(t, plane, with)
	in = install(t, map[string]string{"kustomization.yaml": "resources: [DEPLOY/overlays/default]\ncomponents: [DEPLOY/components/tls, DEPLOY/components/" + component + "]\n"})
	in.awaitPolicies(r.Namespace())
	r.Start(rig.Operators()...)
	return in, r
}

// SEC-01, SEC-02: what components/tls-self-signed grants suffices to make certificates, and to
// write them again, and the policies let them through.
func TestSEC01OperatorsSignWithTheRightsOfTheirComponent(t *testing.T) {
	refused := len(journal.Refusals())
	in, r := secured(t, "signed", "tls-self-signed")
	c := parse[v1alpha1.TidbCluster](t, cluster)
	c.Spec.TLS = &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
	r.Apply(c)
	r.AwaitConverged(whole())
	c = parse[v1alpha1.TidbCluster](t, cluster)
	c.Spec.TLS = &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{RotatedAt: "today"}}}
	r.Apply(c)
	r.Await(rig.Timeout, "a second CA", func(o rig.Objects) error {
		phase, _, err := unstructured.NestedString(o.Get(v1alpha1.KindPDGroup, "small-pd").Object, "status", "caRotation", "phase")
		if phase == "" {
			err = errors.Join(err, errors.New("no rotation has begun"))
		}
		return err
	})
	in.nothingRefused(r, refused)
}

// SEC-01, SEC-02: what components/tls-issuer grants suffices to have cert-manager sign, by an
// Issuer and then by a ClusterIssuer of the same CA.
func TestSEC01OperatorsHaveCertManagerSignWithTheRightsOfTheirComponent(t *testing.T) {
	refused := len(journal.Refusals())
	in, r := secured(t, "issued", "tls-issuer")
	ca, err := issuance.NewAuthority("corp", time.Now())
	require.NoError(t, err)
	require.NoError(t, r.User().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rig.CertManagerNamespace}}))
	for _, namespace := range []string{r.Namespace(), rig.CertManagerNamespace} {
		require.NoError(t, r.User().Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authority"}, Data: ca}))
	}
	issuer := func(kind string, metadata map[string]any) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": map[string]any{"ca": map[string]any{"secretName": "authority"}},
		}}
		require.NoError(t, r.User().Create(t.Context(), out))
		return out
	}
	signed := func(by v1alpha1.IssuerReference) {
		c := parse[v1alpha1.TidbCluster](t, cluster)
		c.Spec.TLS = &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{Issuer: &by}}
		r.Apply(c)
		// The rig watches no Secrets: nothing that it sees need change when the last one is signed.
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.NoError(c, signedBy(t.Context(), r, by)) }, rig.Timeout, tick)
		r.AwaitConverged(whole())
	}
	issuer(v1alpha1.KindIssuer, map[string]any{"namespace": r.Namespace(), "name": "corp"})
	signed(v1alpha1.IssuerReference{Name: "corp"})
	everywhere := issuer(v1alpha1.KindClusterIssuer, map[string]any{"name": "everywhere"})
	t.Cleanup(func() { require.NoError(t, r.User().Delete(context.WithoutCancel(t.Context()), everywhere)) })
	signed(v1alpha1.IssuerReference{Name: "everywhere", Kind: v1alpha1.KindClusterIssuer})
	in.nothingRefused(r, refused)
}

// signedBy says which Secret of the cluster cert-manager has not had signed by an issuer.
func signedBy(ctx context.Context, r *rig.Test, by v1alpha1.IssuerReference) error {
	for _, name := range []string{"small-pd-cluster-secret", "small-tikv-cluster-secret", "small-tidb-cluster-secret", "small-cluster-client-secret"} {
		var secret corev1.Secret
		if err := r.User().Get(ctx, types.NamespacedName{Namespace: r.Namespace(), Name: name}, &secret); err != nil {
			return err
		}
		if kind, of := secret.Annotations["cert-manager.io/issuer-kind"], secret.Annotations["cert-manager.io/issuer-name"]; kind != by.KindOrDefault() || of != by.Name {
			return fmt.Errorf("secret %s is signed by %s %s", name, kind, of)
		}
	}
	return nil
}
