package sqljob

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestDB12AJobKnowsTheServerByTheCAAndGetsNoKey(t *testing.T) {
	g := sample()
	g.Spec.TLS = &v1alpha1.TiDBTLS{}
	assert.Empty(t, parsed(t, renderJob(g, new(grants()), image, 4000)).TLS, "MySQL has no TLS")
	g.Spec.TLS.MySQL = &v1alpha1.MySQLTLS{}
	job := renderJob(g, new(grants()), image, 4000)
	from := volume(t, job, "tls", parsed(t, job).TLS)
	require.NotNil(t, from)
	assert.Equal(t, "basic-tidb-server-secret", from.Secret.SecretName)
	assert.Equal(t, []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}, from.Secret.Items)
	g.Spec.TLS.MySQL.ClientAuth = v1alpha1.ClientAuthVerify
	job = renderJob(g, new(grants()), image, 4000)
	assert.Equal(t, []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}, {Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}},
		volume(t, job, "tls", parsed(t, job).TLS).Secret.Items, "unless the servers want one")
}
