package certificate

import (
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func pdGroup(tls *v1alpha1.PDTLS) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "shop"}}
	g.Spec.TLS, g.Spec.Replicas = tls, ptr.To[int32](3)
	return g
}

func tidbGroup(tls *v1alpha1.TiDBTLS) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "shop"}}
	g.Spec.TLS, g.Spec.Replicas, g.Spec.PDGroup.Name = tls, ptr.To[int32](2), "basic-pd"
	return g
}

func authority(t *testing.T) *pki.CA {
	t.Helper()
	ca, err := pki.New(now)
	require.NoError(t, err)
	return ca
}

func data(t *testing.T, ca *pki.CA, leaf pki.Leaf) map[string][]byte {
	t.Helper()
	if leaf.From.IsZero() {
		leaf.From, leaf.Until = now.Add(-time.Hour), now.Add(time.Hour)
	}
	out, err := ca.Secret(leaf)
	require.NoError(t, err)
	return out
}

// names are those that TiDB Operator's documents have in a certificate of PD.
func sans() []string {
	return []string{"basic-pd.shop.svc", "basic-pd-peer.shop.svc", "*.basic-pd-peer.shop.svc", "127.0.0.1"}
}

func TestSEC01TheNamesOfSecretsAreThoseOfTiDBOperator(t *testing.T) {
	pd := pdGroup(&v1alpha1.PDTLS{})
	got := SecretsFor(pd, pd)
	assert.Equal(t, []string{"basic-pd-cluster-secret", "basic-cluster-client-secret", ""}, []string{got.Member.Name, got.Client.Name, got.MySQL.Name})
	got = SecretsFor(tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}}), pd)
	assert.Equal(t, []string{"basic-tidb-cluster-secret", "basic-cluster-client-secret", "basic-tidb-server-secret"}, []string{got.Member.Name, got.Client.Name, got.MySQL.Name})
	pd.Name, pd.Spec.TLS.ClientSecretName = "alone", "mine"
	assert.Equal(t, "mine", SecretsFor(pd, pd).Client.Name)
	pd.Spec.TLS.ClientSecretName = ""
	assert.Equal(t, "alone-cluster-client-secret", SecretsFor(pd, pd).Client.Name)
	assert.Equal(t, Secrets{}, SecretsFor(pdGroup(nil), pdGroup(nil)), "nothing is read without TLS")
}

func TestSEC01TheDefectOfAnInvalidSecretIsNamed(t *testing.T) {
	ca, other := authority(t), authority(t)
	good, client := data(t, ca, pki.Leaf{Names: sans()}), data(t, ca, pki.Leaf{})
	with := func(key string, value []byte) map[string][]byte {
		out := maps.Clone(good)
		out[key] = value
		return out
	}
	only := func(u x509.ExtKeyUsage) map[string][]byte {
		return data(t, ca, pki.Leaf{Names: sans(), Usages: []x509.ExtKeyUsage{u}})
	}
	secret := "Secret basic-pd-cluster-secret" //nolint:gosec // a name
	for name, c := range map[string]struct {
		member, client Secret
		says           string
	}{
		"all is well":          {Secret{Data: good}, Secret{Data: client}, ""},
		"a Secret is missing":  {Secret{}, Secret{Data: client}, secret + " does not exist: create it: kubectl -n shop create secret generic basic-pd-cluster-secret --from-file=ca.crt=FILE --from-file=tls.crt=FILE --from-file=tls.key=FILE"},
		"that of the client":   {Secret{Data: good}, Secret{}, "Secret basic-cluster-client-secret does not exist"},
		"it may not be read":   {Secret{Refused: true}, Secret{Data: client}, secret + ": the operators may not read Secrets: install them with components/tls"},
		"a key is missing":     {Secret{Data: with("tls.key", nil)}, Secret{Data: client}, secret + ", key tls.key: it is missing: fix it: kubectl -n shop edit secret basic-pd-cluster-secret"},
		"no PEM":               {Secret{Data: with("ca.crt", []byte("x"))}, Secret{Data: client}, "key ca.crt: not a PEM certificate"},
		"no certificate":       {Secret{Data: with("tls.crt", []byte("x"))}, Secret{Data: client}, "key tls.crt: not a PEM certificate"},
		"no key":               {Secret{Data: with("tls.key", []byte("x"))}, Secret{Data: client}, "key tls.key: not a PEM private key"},
		"the key of another":   {Secret{Data: with("tls.key", client["tls.key"])}, Secret{Data: client}, "key tls.key: it belongs to another certificate than the one of key tls.crt"},
		"a CA that did not":    {Secret{Data: with("ca.crt", data(t, other, pki.Leaf{})["ca.crt"])}, Secret{Data: client}, "key tls.crt: ca.crt of the same Secret has not signed it"},
		"the client's CA":      {Secret{Data: good}, Secret{Data: data(t, other, pki.Leaf{})}, secret + ", key tls.crt: ca.crt of Secret basic-cluster-client-secret has not signed it"},
		"expired":              {Secret{Data: data(t, ca, pki.Leaf{Names: sans(), From: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)})}, Secret{Data: client}, "key tls.crt: it expired at 2026-11-26T11:00:00Z"},
		"not yet valid":        {Secret{Data: data(t, ca, pki.Leaf{Names: sans(), From: now.Add(time.Hour), Until: now.Add(2 * time.Hour)})}, Secret{Data: client}, "it is not valid before 2026-11-26T13:00:00Z"},
		"expired, the client":  {Secret{Data: good}, Secret{Data: data(t, ca, pki.Leaf{From: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)})}, "Secret basic-cluster-client-secret, key tls.crt: it expired at"},
		"a name is missing":    {Secret{Data: data(t, ca, pki.Leaf{Names: sans()[1:]})}, Secret{Data: client}, "its subject alternative names lack basic-pd.shop.svc"},
		"a pod is missing":     {Secret{Data: data(t, ca, pki.Leaf{Names: append(sans()[:2:2], "basic-pd-0.basic-pd-peer.shop.svc")})}, Secret{Data: client}, "lack basic-pd-1.basic-pd-peer.shop.svc"},
		"it may not serve":     {Secret{Data: only(x509.ExtKeyUsageClientAuth)}, Secret{Data: client}, "its extended key usage lacks server auth"},
		"it may not ask":       {Secret{Data: only(x509.ExtKeyUsageServerAuth)}, Secret{Data: client}, "its extended key usage lacks client auth"},
		"a client that cannot": {Secret{Data: good}, Secret{Data: only(x509.ExtKeyUsageServerAuth)}, "Secret basic-cluster-client-secret, key tls.crt: its extended key usage lacks client auth"},
	} {
		t.Run(name, func(t *testing.T) {
			pd := pdGroup(&v1alpha1.PDTLS{})
			s := SecretsFor(pd, pd)
			c.member.Name, c.client.Name = s.Member.Name, s.Client.Name
			s.Member, s.Client = c.member, c.client
			o := s.Judge(pd, pd, nil, now)
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, step.KindStall, o.Kind)
			assert.Equal(t, v1alpha1.ReasonCertificateInvalid, o.Reason)
			assert.Contains(t, o.Message, c.says)
			assert.Positive(t, o.After, "nothing tells that it was fixed")
		})
	}
}

// A group that did not stop would keep PD from stopping, and a cluster whose certificates are lost has to.
func TestSEC01ASuspendedGroupNeedsNoCertificate(t *testing.T) {
	pd := pdGroup(&v1alpha1.PDTLS{})
	tidb := tidbGroup(&v1alpha1.TiDBTLS{})
	assert.Equal(t, v1alpha1.ReasonCertificateInvalid, SecretsFor(tidb, pd).Judge(tidb, pd, nil, now).Reason)
	tidb.Spec.Suspended = true
	assert.Equal(t, step.Done(), SecretsFor(tidb, pd).Judge(tidb, pd, nil, now))
}

func TestSEC01ACertificateMustNameTheExistingPods(t *testing.T) {
	ca := authority(t)
	pd := pdGroup(&v1alpha1.PDTLS{})
	s := SecretsFor(pd, pd)
	s.Client.Data = data(t, ca, pki.Leaf{})
	names := Hosts(pd, nil)
	assert.Equal(t, []string{
		"basic-pd-peer.shop.svc", "basic-pd.shop.svc", "basic-pd-0.basic-pd-peer.shop.svc", "basic-pd-1.basic-pd-peer.shop.svc",
		"basic-pd-2.basic-pd-peer.shop.svc", "basic-pd-3.basic-pd-peer.shop.svc",
	}, names, "one more for a member that is replaced")
	s.Member.Data = data(t, ca, pki.Leaf{Names: names})
	assert.Equal(t, step.KindDone, s.Judge(pd, pd, []string{"basic-pd-2"}, now).Kind)
	assert.Contains(t, s.Judge(pd, pd, []string{"basic-pd-7"}, now).Message, "lack basic-pd-7.basic-pd-peer.shop.svc")

	tidb := tidbGroup(&v1alpha1.TiDBTLS{})
	tidb.Spec.MaxSurge, tidb.Spec.ClusterDomain = ptr.To[int32](2), "k8s.test"
	assert.Contains(t, Hosts(tidb, nil), "basic-tidb-3.basic-tidb-peer.shop.svc.k8s.test", "those of a surge")
	kv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "shop"}}
	assert.NotContains(t, strings.Join(Hosts(kv, nil), " "), "kv.shop.svc ", "there is no such Service")
}

func TestDB12MySQLClientsAreShownTheNameOfTheService(t *testing.T) {
	ca := authority(t)
	pd, g := pdGroup(&v1alpha1.PDTLS{}), tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{}})
	s := SecretsFor(g, pd)
	s.Client.Data, s.Member.Data = data(t, ca, pki.Leaf{}), data(t, ca, pki.Leaf{Names: Hosts(g, nil)})
	s.MySQL.Data = data(t, authority(t), pki.Leaf{Names: []string{"basic-tidb.shop.svc"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	assert.Equal(t, step.Done(), s.Judge(g, pd, nil, now), "its CA may be another one")
	g.Spec.TLS.MySQL.ClientAuth = v1alpha1.ClientAuthVerify
	assert.Contains(t, s.Judge(g, pd, nil, now).Message, "its extended key usage lacks client auth", "Jobs show it")
	g.Spec.TLS.MySQL.ClientAuth = ""
	s.MySQL.Data = data(t, ca, pki.Leaf{Names: []string{"db.example.com"}})
	assert.Contains(t, s.Judge(g, pd, nil, now).Message, "Secret basic-tidb-server-secret, key tls.crt: its subject alternative names lack basic-tidb.shop.svc")
}

func TestPX04ProxiesHaveSecretsForClientsAndServers(t *testing.T) {
	ca := authority(t)
	pd := pdGroup(&v1alpha1.PDTLS{})
	g := &v1alpha1.TiProxyGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tiproxy", Namespace: "shop"}}
	g.Spec.Replicas, g.Spec.MaxSurge, g.Spec.PDGroup.Name = ptr.To[int32](1), ptr.To[int32](2), "basic-pd"
	g.Spec.TLS = &v1alpha1.TiProxyTLS{MySQL: &v1alpha1.MySQLTLS{ClientAuth: v1alpha1.ClientAuthVerify}, Backend: &v1alpha1.BackendTLS{}}
	s := SecretsFor(g, pd)
	assert.Equal(t, []string{"basic-tiproxy-cluster-secret", "basic-cluster-client-secret", "basic-tiproxy-server-secret", "basic-tidb-client-secret"},
		[]string{s.Member.Name, s.Client.Name, s.MySQL.Name, s.Backend.Name})
	assert.Equal(t, []string{
		"basic-tiproxy-peer.shop.svc", "basic-tiproxy.shop.svc", "basic-tiproxy-0.basic-tiproxy-peer.shop.svc", "basic-tiproxy-1.basic-tiproxy-peer.shop.svc", "basic-tiproxy-2.basic-tiproxy-peer.shop.svc",
	}, Hosts(g, nil), "those of a surge")
	s.Client.Data, s.Member.Data = data(t, ca, pki.Leaf{}), data(t, ca, pki.Leaf{Names: Hosts(g, nil)})
	s.MySQL.Data = data(t, authority(t), pki.Leaf{Names: []string{"basic-tiproxy.shop.svc"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	assert.Contains(t, s.Judge(g, pd, nil, now).Message, "Secret basic-tidb-client-secret does not exist")
	s.Backend.Data = data(t, ca, pki.Leaf{Names: []string{"x"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	assert.Contains(t, s.Judge(g, pd, nil, now).Message, "Secret basic-tidb-client-secret, key tls.crt: its extended key usage lacks client auth")
	s.Backend.Data = data(t, authority(t), pki.Leaf{})
	assert.Equal(t, step.Done(), s.Judge(g, pd, nil, now), "its CA may be another one; no Job shows what clients are shown")
	assert.Len(t, s.Statuses(now), 4)
	g.Spec.TLS, g.Spec.PDGroup.Name = &v1alpha1.TiProxyTLS{Backend: &v1alpha1.BackendTLS{SecretName: "mine"}}, "alone"
	assert.Equal(t, "mine", SecretsFor(g, pd).Backend.Name)
	assert.Empty(t, SecretsFor(g, pd).MySQL.Name)
}

// scheme has the members of a PDGroup listen with a scheme.
func scheme(pd *v1alpha1.PDGroup, scheme string) *v1alpha1.PDGroup {
	pd.Status.Scheme = scheme
	return pd
}

func suspended(g *v1alpha1.TiDBGroup) *v1alpha1.TiDBGroup {
	g.Spec.Suspended = true
	return g
}

func TestSEC01AGroupAndItsPDGroupHaveTLSOrNeitherHas(t *testing.T) {
	secured, plain := pdGroup(&v1alpha1.PDTLS{}), pdGroup(nil)
	for name, c := range map[string]struct {
		group v1alpha1.Group
		pd    *v1alpha1.PDGroup
		says  string
	}{
		"neither":                    {tidbGroup(nil), plain, ""},
		"no PDGroup to compare with": {tidbGroup(nil), nil, ""},
		"itself":                     {plain, plain, ""},
		"the group alone":            {tidbGroup(&v1alpha1.TiDBTLS{}), plain, "spec.tls: PDGroup basic-pd has none, so this group cannot connect to PD: leave it out here"},
		"PD runs without it still":   {tidbGroup(&v1alpha1.TiDBTLS{}), scheme(pdGroup(&v1alpha1.PDTLS{}), v1alpha1.SchemeHTTP), "spec.tls: it was changed, and pods of PDGroup basic-pd that were started before still run: set spec.suspended to true"},
		"PD runs with it still":      {tidbGroup(nil), scheme(pdGroup(nil), v1alpha1.SchemeHTTPS), "spec.tls: it was changed"},
		"on its way":                 {suspended(tidbGroup(nil)), scheme(pdGroup(nil), v1alpha1.SchemeHTTPS), ""},
		"the PDGroup alone":          {tidbGroup(nil), secured, "spec.tls: PDGroup basic-pd has it, so this group cannot connect to PD: add it here"},
	} {
		t.Run(name, func(t *testing.T) {
			o := SecretsFor(c.group, c.pd).Judge(c.group, c.pd, nil, now)
			if c.says == "" {
				assert.Equal(t, step.Done(), o)
				return
			}
			assert.Equal(t, v1alpha1.ReasonTLSMismatch, o.Reason)
			assert.Contains(t, o.Message, c.says)
		})
	}
}

func TestSEC01StatusShowsWhenCertificatesExpire(t *testing.T) {
	ca := authority(t)
	pd := pdGroup(&v1alpha1.PDTLS{})
	s := SecretsFor(pd, pd)
	s.Member.Data = data(t, ca, pki.Leaf{Names: sans(), From: now.Add(-time.Hour), Until: now.AddDate(1, 0, 0)})
	begin := metav1.NewTime(now.AddDate(0, 0, -9))
	assert.Equal(t, []v1alpha1.CertificateStatus{{SecretName: "basic-pd-cluster-secret", NotAfter: metav1.NewTime(now.AddDate(0, 0, 9)), NotBefore: &begin}}, s.Statuses(now), "the CA ends before it") //nolint:gosec // a name
	s.Client.Data = data(t, ca, pki.Leaf{})
	assert.Len(t, s.Statuses(now), 2)
	assert.True(t, s.Statuses(now)[1].NotAfter.Time.Equal(now.Add(time.Hour)))
}

// Signatures are verified once, and what was verified ends all the same.
func TestSEC01AVerifiedCertificateIsTrustedUntilItsCAExpires(t *testing.T) {
	ca := authority(t) // it has nine days
	pd := pdGroup(&v1alpha1.PDTLS{})
	s := SecretsFor(pd, pd)
	long := pki.Leaf{Names: sans(), From: now.Add(-time.Hour), Until: now.AddDate(1, 0, 0)}
	s.Member.Data, s.Client.Data = data(t, ca, long), data(t, ca, pki.Leaf{From: long.From, Until: long.Until})
	s.Member.Load()
	s.Client.Load()
	member, err := s.Member.Pair()
	require.NoError(t, err)
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now))
	first, err := member.prove(member.CA, x509.ExtKeyUsageAny, now)
	require.NoError(t, err)
	again, err := member.prove(member.CA, x509.ExtKeyUsageAny, now.AddDate(0, 0, 8))
	require.NoError(t, err)
	assert.Same(t, &first[0], &again[0], "it is the chain that was found")
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now.AddDate(0, 0, 8)))
	assert.Contains(t, s.Judge(pd, pd, nil, now.AddDate(0, 0, 10)).Message, "ca.crt of the same Secret does not verify it")
	for range mostProofs + 1 {
		_, err := member.prove(member.CA.Clone(), x509.ExtKeyUsageAny, now)
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(member.proofs.known), mostProofs)
}

func TestSEC01AnExpiryIsReportedInTheLastTenthOfTheLifetime(t *testing.T) {
	ca := authority(t) // it has nine days of eighteen
	pd := pdGroup(&v1alpha1.PDTLS{})
	for name, c := range map[string]struct {
		member, client pki.Leaf
		at             time.Time
		says           string
	}{
		"a fifth is left":   {pki.Leaf{From: now.Add(-8 * time.Hour), Until: now.Add(2 * time.Hour)}, pki.Leaf{Until: now.Add(time.Hour)}, now, ""},
		"the last tenth":    {pki.Leaf{From: now.Add(-9 * time.Hour), Until: now.Add(time.Hour)}, pki.Leaf{}, now, "Secret basic-pd-cluster-secret, key tls.crt: it expires at 2026-11-26T13:00:00Z: renew it: kubectl -n shop edit secret basic-pd-cluster-secret"},
		"the first of both": {pki.Leaf{From: now.Add(-99 * time.Hour), Until: now.Add(2 * time.Hour)}, pki.Leaf{From: now.Add(-99 * time.Hour), Until: now.Add(time.Hour)}, now, "Secret basic-cluster-client-secret, key tls.crt: it expires at 2026-11-26T13:00:00Z"},
		"a month of years":  {pki.Leaf{From: now.AddDate(-90, 0, 0), Until: now.AddDate(10, 0, 0)}, pki.Leaf{}, now, ""},
		"the CA": {pki.Leaf{From: now.AddDate(-90, 0, 0), Until: now.AddDate(10, 0, 0)}, pki.Leaf{From: now, Until: now.AddDate(1, 0, 0)}, now.AddDate(0, 0, 8),
			"key tls.crt: its CA expires at 2026-12-05T12:00:00Z: renew the CA with the same key"},
	} {
		t.Run(name, func(t *testing.T) {
			s := SecretsFor(pd, pd)
			c.member.Names = sans()
			s.Member.Data, s.Client.Data = data(t, ca, c.member), data(t, ca, c.client)
			got := s.DescribeExpiry(pd, pd, c.at)
			if c.says == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, c.says)
			assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, c.at), "nothing is held up")
		})
	}
	assert.Empty(t, Secrets{Member: Secret{Name: "x"}}.DescribeExpiry(pd, pd, now), "what is not there does not end")
}

func TestSEC01AGroupIsReconciledMoreOftenWhenItsCertificateExpiresSoon(t *testing.T) {
	ends := func(in ...time.Duration) (out []v1alpha1.CertificateStatus) {
		for _, left := range in {
			out = append(out, v1alpha1.CertificateStatus{NotAfter: metav1.NewTime(now.Add(left))})
		}
		return out
	}
	assert.Equal(t, ReviewAgain, ReviewDelay(nil, now))
	assert.Equal(t, ReviewAgain, ReviewDelay(ends(24*time.Hour, 240*time.Hour), now))
	assert.Equal(t, LookAgain, ReviewDelay(ends(24*time.Hour, time.Hour), now))
	assert.Equal(t, LookAgain, ReviewDelay(ends(-time.Hour), now))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte("x"), []byte("-----BEGIN PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, ca, cert, key []byte) {
		pd := pdGroup(&v1alpha1.PDTLS{})
		s := SecretsFor(pd, pd)
		s.Client.Data = map[string][]byte{"ca.crt": ca, "tls.crt": cert, "tls.key": key}
		s.Member.Data = s.Client.Data
		assert.Equal(t, step.KindStall, s.Judge(pd, pd, nil, now).Kind, "no text of a fuzzer is a certificate")
	})
}
