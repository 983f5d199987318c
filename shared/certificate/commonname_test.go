package certificate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

func tikvGroup(allowed ...string) *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: "shop"}}
	g.Spec.TLS, g.Spec.PDGroup.Name = &v1alpha1.TLS{AllowedCommonNames: allowed}, "basic-pd"
	return g
}

// A client whose name is not in the list is refused from the first restart on.
func TestSEC01ACertificateWithoutAnAllowedNameIsReportedBeforeARestart(t *testing.T) {
	ca := authority(t)
	secret := func(name, common string, sans ...string) Secret {
		return Secret{Name: name, Data: data(t, ca, pki.Leaf{Names: sans, Common: common})}
	}
	pods := []string{"basic-tikv-peer.shop.svc", "*.basic-tikv-peer.shop.svc"}
	pd, tidb := pdGroup(&v1alpha1.PDTLS{}), tidbGroup(&v1alpha1.TiDBTLS{})
	for name, c := range map[string]struct {
		allowed, others      []string
		member, client, tidb string
		says                 string
	}{
		"anybody":              {nil, nil, "kv", "ops", "db", ""},
		"all are let in":       {[]string{"kv", "ops", "db", "pd"}, []string{"kv"}, "kv", "ops", "db", ""},
		"its own members":      {[]string{"ops", "db", "pd"}, nil, "kv", "ops", "db", `Secret basic-tikv-cluster-secret, key tls.crt: its common name is "kv", and TiKVGroup basic-tikv lets connect only ops, db, pd (spec.tls.allowedCommonNames): fix it: kubectl -n shop edit secret basic-tikv-cluster-secret`},
		"the operators":        {[]string{"kv", "db", "pd"}, nil, "kv", "ops", "db", `Secret basic-cluster-client-secret, key tls.crt: its common name is "ops"`},
		"another group":        {[]string{"kv", "ops", "pd"}, nil, "kv", "ops", "db", `Secret basic-tidb-cluster-secret, key tls.crt: its common name is "db"`},
		"PD":                   {[]string{"kv", "ops", "db"}, nil, "kv", "ops", "db", `Secret basic-pd-cluster-secret, key tls.crt: its common name is "pd"`},
		"another one's list":   {nil, []string{"ops"}, "kv", "ops", "db", `Secret basic-tikv-cluster-secret, key tls.crt: its common name is "kv", and TiDBGroup basic-tidb lets connect only ops`},
		"one that has no file": {[]string{"kv", "ops", "pd"}, nil, "kv", "ops", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := tikvGroup(c.allowed...)
			tidb.Spec.TLS.AllowedCommonNames = c.others
			s := Secrets{Member: secret("basic-tikv-cluster-secret", c.member, pods...), Client: secret("basic-cluster-client-secret", c.client)}
			s.Others = []Other{{Group: pd, Member: secret("basic-pd-cluster-secret", "pd")}, {Group: tidb}}
			if c.tidb != "" {
				s.Others[1].Member = secret("basic-tidb-cluster-secret", c.tidb)
			}
			o := s.Judge(g, pd, nil, now)
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, v1alpha1.ReasonCertificateInvalid, o.Reason)
			assert.Contains(t, o.Message, c.says)
		})
	}
}

func TestSEC01PDLetsItsOwnMembersConnectByNameAlone(t *testing.T) {
	ca := authority(t)
	pd := pdGroup(&v1alpha1.PDTLS{})
	pd.Spec.TLS.AllowedCommonNames = []string{"pd"}
	s := Secrets{Member: Secret{Name: "m", Data: data(t, ca, pki.Leaf{Names: sans(), Common: "pd"})}, Client: Secret{Name: "c", Data: data(t, ca, pki.Leaf{Common: "ops"})}}
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now), "its client port demands no name")
	s.Others = []Other{{Group: tikvGroup("kv")}}
	assert.Contains(t, s.Judge(pd, pd, nil, now).Message, "TiKVGroup basic-tikv lets connect only kv")
}

func TestSEC01MembersAreNotRestartedWhileOthersMayShowFormerNames(t *testing.T) {
	s := Secrets{Member: Secret{Name: "m", Written: now.Add(-time.Hour)}, Client: Secret{Name: "c", Written: now.Add(-time.Hour)}, Others: []Other{{Group: tidbGroup(nil), Member: Secret{Name: "o", Written: now.Add(-30 * time.Second)}}}}
	secret, left := s.RecentChange(tikvGroup("kv"), now)
	assert.Equal(t, "o", secret)
	assert.Equal(t, settled-30*time.Second, left)
	_, left = s.RecentChange(tikvGroup("kv"), now.Add(settled))
	assert.Zero(t, left)
	_, left = s.RecentChange(tikvGroup(), now)
	assert.Zero(t, left, "anybody may connect")
}

func TestSEC01AGeneratedCertificateHasPDsFirstAllowedName(t *testing.T) {
	pd := pdGroup(&v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}})
	names := func() map[string]string {
		out := map[string]string{}
		for _, r := range Requests(pd, []v1alpha1.Group{pd, tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}})}) {
			out[r.Secret] = r.CommonName()
		}
		return out
	}
	assert.Equal(t, "basic-tidb-cluster-secret", names()["basic-tidb-cluster-secret"])
	pd.Spec.TLS.AllowedCommonNames = []string{"basic", "other"}
	assert.Equal(t, map[string]string{"basic-pd-cluster-secret": "basic", "basic-cluster-client-secret": "basic", "basic-tidb-cluster-secret": "basic", "basic-tidb-server-secret": "basic-tidb-server-secret"}, //nolint:gosec // a name
		names(), "what MySQL clients are shown opens no member")
	ca := authority(t)
	r := Request{Secret: "s", Connects: true, Common: "basic"}
	assert.ErrorContains(t, r.CheckData(data(t, ca, pki.Leaf{}), now), `its common name is "test", not "basic"`)
	assert.NoError(t, r.CheckData(data(t, ca, pki.Leaf{Common: "basic"}), now))
	r.Common = ""
	assert.NoError(t, r.CheckData(data(t, ca, pki.Leaf{}), now), "what was made before is kept")
}
