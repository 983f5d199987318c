package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// SEC-01: the API server of these tests has no CRDs of cert-manager.
func TestSEC01AMissingCertManagerIsReported(t *testing.T) {
	w := begin(t)
	w.create(func(g *v1alpha1.PDGroup) {
		g.Spec.TLS = &v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "corp"}}}
	})
	g := w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionStalled, "True/CertificateInvalid")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionStalled), "this Kubernetes has no Certificates of cert-manager.io: install cert-manager")
}
