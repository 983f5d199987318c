package installation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	r.Await(rig.Patience, "a second CA", func(o rig.Objects) error {
		phase, _, err := unstructured.NestedString(o.Get(v1alpha1.KindPDGroup, "small-pd").Object, "status", "caRotation", "phase")
		if phase == "" {
			err = errors.Join(err, errors.New("no rotation has begun"))
		}
		return err
	})
	in.nothingRefused(r, refused)
}

// SEC-01, SEC-02: what components/tls-issuer grants suffices to have cert-manager sign.
func TestSEC01OperatorsHaveCertManagerSignWithTheRightsOfTheirComponent(t *testing.T) {
	refused := len(journal.Refusals())
	in, r := secured(t, "issued", "tls-issuer")
	ca, err := issuance.NewAuthority("corp", time.Now())
	require.NoError(t, err)
	require.NoError(t, r.User().Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "authority"}, Data: ca}))
	issuer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
		"metadata": map[string]any{"namespace": r.Namespace(), "name": "corp"},
		"spec":     map[string]any{"ca": map[string]any{"secretName": "authority"}},
	}}
	require.NoError(t, r.User().Create(t.Context(), issuer))
	c := parse[v1alpha1.TidbCluster](t, cluster)
	c.Spec.TLS = &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "corp"}}}
	r.Apply(c)
	r.AwaitConverged(whole())
	in.nothingRefused(r, refused)
}
