package jobtemplate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// SEC-01: the certificate that is made has the name by which a Job knows the servers.
func TestSEC01ARestoreCanVerifyAGroupThatIsClosed(t *testing.T) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic", Namespace: "db"}}
	pd.Spec.TLS = &v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "db"}}
	g.Spec.PDGroup.Name = "basic"
	g.Spec.TLS = &v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}}
	g.Spec.Service = &v1alpha1.ServiceSpec{Closed: true}
	host, _ := DatabaseAddress(g)
	for _, r := range certificate.Requests(pd, []v1alpha1.Group{pd, g}) {
		if r.Secret == v1alpha1.MySQLSecretName(g) {
			assert.Contains(t, r.Names, host)
		}
	}
}
