package storestate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// The flags are those of "PD Control User Guide".
func TestACommandToPDWithTLSShowsItsCertificate(t *testing.T) {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "basic-pd"}}
	assert.Equal(t, "kubectl -n shop exec svc/basic-pd -- /pd-ctl", storestate.PDCtl(g))

	g.Spec.TLS = &v1alpha1.PDTLS{}
	assert.Equal(t, "kubectl -n shop exec svc/basic-pd -- /pd-ctl -u https://basic-pd.shop.svc:2379"+
		" --cacert /var/lib/pd-tls/ca.crt --cert /var/lib/pd-tls/tls.crt --key /var/lib/pd-tls/tls.key", storestate.PDCtl(g))
	g.Spec.ClusterDomain = "k8s.test"
	assert.Contains(t, storestate.PDCtl(g), " -u https://basic-pd.shop.svc.k8s.test:2379 ", "as its certificate has it")
}
