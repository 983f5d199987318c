package certificate

import (
	"bytes"
	"crypto/x509"
	"slices"
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

func madeBy(source v1alpha1.CertificateSource) *v1alpha1.PDGroup {
	return pdGroup(&v1alpha1.PDTLS{CertificateSource: source})
}

// cluster returns groups of every kind that ask for every certificate.
func cluster(pd *v1alpha1.PDGroup) []v1alpha1.Group {
	tidb := tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{ClientAuth: v1alpha1.ClientAuthVerify}})
	tidb.Spec.MaxSurge, tidb.Spec.ClusterDomain = ptr.To[int32](2), "k8s.test"
	proxy := &v1alpha1.TiProxyGroup{}
	proxy.Name, proxy.Spec.TLS = "basic-tiproxy", &v1alpha1.TiProxyTLS{MySQL: &v1alpha1.MySQLTLS{}, Backend: &v1alpha1.BackendTLS{}}
	proxy.Spec.PDGroup.Name = pd.Name
	out := []v1alpha1.Group{pd, tidb, proxy}
	for _, c := range v1alpha1.ComponentTable() {
		switch g := c.New().(type) {
		case *v1alpha1.TiKVGroup:
			g.Name, g.Spec.TLS, g.Spec.PDGroup.Name = "kv", &v1alpha1.TLS{}, pd.Name
			out = append(out, g)
		case *v1alpha1.TiFlashGroup:
			g.Name, g.Spec.TLS, g.Spec.PDGroup.Name = "flash", &v1alpha1.TLS{}, pd.Name
			out = append(out, g)
		case *v1alpha1.TiCDCGroup:
			g.Name, g.Spec.TLS, g.Spec.PDGroup.Name = "cdc", &v1alpha1.TLS{}, pd.Name
			out = append(out, g)
		}
	}
	for _, g := range out {
		g.SetNamespace("shop")
	}
	return out
}

// What is asked for is what Judge asks of a user's: one source of names and usages.
func TestSEC01ARequestedCertificateIsAccepted(t *testing.T) {
	pd := madeBy(v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}})
	groups := cluster(pd)
	ca, secrets := authority(t), map[string]map[string][]byte{}
	for _, r := range Requests(pd, groups) {
		assert.NotContains(t, secrets, r.Secret, "each once")
		names := slices.Clone(r.Names)
		for _, address := range r.Addresses {
			names = append(names, address.String())
		}
		secrets[r.Secret] = data(t, ca, pki.Leaf{Names: names, Usages: r.ExtKeyUsages()})
		assert.NoError(t, r.CheckData(secrets[r.Secret], now))
		assert.Len(t, r.Usages(), len(r.ExtKeyUsages()))
		assert.LessOrEqual(t, len(r.CommonName()), 64)
	}
	assert.Len(t, secrets, 10, "six of members, two for MySQL clients, one of the operators, one of proxies")
	for _, g := range groups {
		s := SecretsFor(g, pd)
		for _, secret := range []*Secret{&s.Member, &s.Client, &s.MySQL, &s.Backend} {
			if secret.Name != "" {
				assert.True(t, secret.Made, secret.Name)
				secret.Data = secrets[secret.Name]
			}
		}
		assert.Equal(t, step.Done(), s.Judge(g, pd, nil, now), g.GroupKind())
		assert.Equal(t, step.Done(), s.Judge(g, pd, []string{g.GetName() + "-97"}, now), "whatever pods there will be")
	}
}

func TestSEC01SecretsOfTheClusterBelongToThePDGroup(t *testing.T) {
	pd := madeBy(v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}})
	for _, r := range Requests(pd, cluster(pd)) {
		switch r.Secret {
		case "basic-cluster-client-secret", "basic-tidb-client-secret":
			assert.Equal(t, pd.Name, r.Owner.GetName())
			assert.Empty(t, r.Names, "PD compares the address of who connects with names")
			assert.False(t, r.Serves)
		case "kv-cluster-secret":
			assert.Equal(t, "kv", r.Owner.GetName())
			assert.Equal(t, []string{
				"kv-peer.shop.svc", "*.kv-peer.shop.svc",
				"kv-peer.shop.svc.cluster.local", "kv-peer.shop", "kv-peer", "*.kv-peer.shop.svc.cluster.local", "localhost",
			}, r.Names)
			assert.Len(t, r.Addresses, 2, "127.0.0.1 and ::1")
		case "basic-tidb-server-secret":
			assert.Subset(t, r.Names, []string{"basic-tidb.shop.svc.k8s.test", "basic-tidb.shop.svc", "basic-tidb.shop", "basic-tidb", "localhost", "basic-tidb-peer.shop.svc.k8s.test"})
			assert.Len(t, r.Names, 9, "with those of the Service of the servers, where a Restore reaches a group that is closed")
		case "basic-tiproxy-server-secret":
			assert.False(t, r.Connects)
		}
	}
}

func TestSEC01ASecretThatTheSpecNamesBelongsToAUser(t *testing.T) {
	pd := madeBy(v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "ca"}})
	pd.Spec.TLS.SecretName, pd.Spec.TLS.ClientSecretName = "mine", "mine-too"
	tidb := tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{SecretName: "public"}})
	requests := Requests(pd, []v1alpha1.Group{pd, tidb})
	require.Len(t, requests, 1)
	assert.Equal(t, "basic-tidb-cluster-secret", requests[0].Secret)
	assert.NotContains(t, requests[0].Names, "basic-tidb", "a company's issuer may sign full names only")
	assert.Empty(t, requests[0].Addresses)
	assert.Contains(t, SecretsFor(pd, pd).Judge(pd, pd, nil, now).Message, "Secret mine does not exist: create it: kubectl")
	assert.Empty(t, Requests(pdGroup(&v1alpha1.PDTLS{}), []v1alpha1.Group{pdGroup(&v1alpha1.PDTLS{})}), "a user brings all")
	assert.Empty(t, Requests(pdGroup(nil), []v1alpha1.Group{pdGroup(nil)}))
}

func TestSEC01TheSignerIsNamedWhileASecretIsMissing(t *testing.T) {
	pd := madeBy(v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "corp", Kind: "ClusterIssuer"}})
	s := SecretsFor(pd, pd)
	o := s.Judge(pd, pd, nil, now)
	assert.Equal(t, step.KindWait, o.Kind)
	assert.Equal(t, v1alpha1.ReasonWaitingForCertificate, o.Reason)
	assert.Equal(t, lookWhileMade, o.After)
	pd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	assert.Equal(t, LookSoon, s.Judge(pd, pd, nil, now).After, "it has waited for long")
	assert.Equal(t, "Secret basic-pd-cluster-secret does not exist yet: ClusterIssuer corp of PDGroup basic-pd has not signed it yet: kubectl -n shop describe certificate basic-pd-cluster-secret", o.Message)
	s.Member.Said, s.Member.Blocked = "cert-manager says no", true
	o = s.Judge(pd, pd, nil, now)
	assert.Equal(t, step.KindStall, o.Kind)
	assert.Equal(t, v1alpha1.ReasonCertificateInvalid, o.Reason)
	assert.Equal(t, "Secret basic-pd-cluster-secret does not exist yet: cert-manager says no", o.Message)
	s.Member.Refused = true
	assert.Contains(t, s.Judge(pd, pd, nil, now).Message, "install them with components/tls ", "the operator lacks the right")

	pd = madeBy(v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}})
	s = SecretsFor(pd, pd)
	s.Member.Data = map[string][]byte{}
	assert.Equal(t, "Secret basic-pd-cluster-secret, key ca.crt: it is missing: the CA of PDGroup basic-pd has not signed it yet: kubectl -n shop describe pdgroup basic-pd", s.Judge(pd, pd, nil, now).Message)
}

func TestSEC01ARequestNamesWhatASecretLacks(t *testing.T) {
	ca := authority(t)
	r := Request{Secret: "s", Names: []string{"*.kv-peer.shop.svc"}, Addresses: loopbackAddresses(), Serves: true, Connects: true}
	good := pki.Leaf{Names: append([]string{"127.0.0.1", "::1"}, r.Names...)}
	assert.NoError(t, r.CheckData(data(t, ca, good), now))
	for says, leaf := range map[string]pki.Leaf{
		"lack ::1":                {Names: append([]string{"127.0.0.1"}, r.Names...)},
		"lack *.kv-peer.shop.svc": {Names: []string{"kv-0.kv-peer.shop.svc"}},
		"lacks client auth":       {Names: good.Names, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		"expired at":              {Names: good.Names, From: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)},
	} {
		assert.ErrorContains(t, r.CheckData(data(t, ca, leaf), now), says)
	}
	assert.ErrorContains(t, r.CheckData(nil, now), "key ca.crt: it is missing")
}

// While a CA is replaced, ca.crt holds the old and the new one.
func TestSEC01TwoAuthoritiesInOneSecretAreBothTrusted(t *testing.T) {
	before, after := authority(t), authority(t)
	old, renewed := data(t, before, pki.Leaf{Names: sans()}), data(t, after, pki.Leaf{})
	pd := pdGroup(&v1alpha1.PDTLS{})
	s := SecretsFor(pd, pd)
	s.Member.Data, s.Client.Data = old, renewed
	assert.Contains(t, s.Judge(pd, pd, nil, now).Message, "has not signed it")
	both := bytes.Join([][]byte{old["ca.crt"], renewed["ca.crt"]}, nil)
	old["ca.crt"], renewed["ca.crt"] = both, both
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now))
}

func TestSEC01ATidbClusterPassesTheSignerToItsPDGroup(t *testing.T) {
	spec := &v1alpha1.TidbClusterSpec{TLS: &v1alpha1.ClusterTLS{CertificateSource: v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "corp"}}}}
	pd, _ := v1alpha1.LookupComponent(v1alpha1.KindPDGroup)
	source := func() v1alpha1.CertificateSource {
		return v1alpha1.SourceOf(pd.Entries(spec, v1alpha1.LocalReference{})[0].Group.(*v1alpha1.PDGroup))
	}
	assert.Equal(t, spec.TLS.CertificateSource, source())
	spec.PD.TLS = &v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}}
	assert.Equal(t, spec.PD.TLS.CertificateSource, source(), "its own counts")
	spec.TLS, spec.PD.TLS = nil, nil
	assert.False(t, source().MakesSecrets())
}

func TestSEC01MembersDoNotStartBetweenTwoAuthorities(t *testing.T) {
	pd := madeBy(v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}})
	before, after := authority(t), authority(t)
	s := SecretsFor(pd, pd)
	s.Member.Data, s.Client.Data = data(t, before, pki.Leaf{Names: sans()}), data(t, before, pki.Leaf{})
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now))
	was := s.Trust()
	assert.NotEmpty(t, was)
	both := bytes.Join([][]byte{s.Member.Data["ca.crt"], data(t, after, pki.Leaf{})["ca.crt"]}, nil)
	s.Member.Data["ca.crt"] = both
	o := s.Judge(pd, pd, nil, now)
	assert.Equal(t, v1alpha1.ReasonWaitingForCertificate, o.Reason)
	assert.Contains(t, o.Message, "Secret basic-cluster-client-secret, keys ca.crt and tls.crt: other authorities than those of Secret basic-pd-cluster-secret")
	s.Client.Data["ca.crt"] = both
	assert.Equal(t, step.Done(), s.Judge(pd, pd, nil, now))
	assert.NotEqual(t, was, s.Trust(), "members start again with both")
	status := s.Statuses(now)
	assert.Equal(t, s.Trust(), status[0].Trust)
	s.Member.Data = data(t, before, pki.Leaf{Names: sans()})
	assert.Equal(t, was, s.Trust(), "a renewed certificate of the same CA restarts no member")
}

// One table of names is asked for and judged by.
func TestDB12MoreNamesOfMySQLClientsAreRequestedAndChecked(t *testing.T) {
	pd := pdGroup(&v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}})
	g := tidbGroup(&v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{DNSNames: []string{"db.corp.example", "*.db.corp.example"}}})
	var made Request
	for _, r := range Requests(pd, []v1alpha1.Group{g}) {
		if r.Secret == "basic-tidb-server-secret" {
			made = r
		}
	}
	assert.Subset(t, made.Names, []string{"basic-tidb.shop.svc", "db.corp.example", "*.db.corp.example"})

	ca := authority(t)
	s := SecretsFor(g, pd)
	s.Member.Data = data(t, ca, pki.Leaf{Names: []string{"basic-tidb.shop.svc", "basic-tidb-peer.shop.svc", "*.basic-tidb-peer.shop.svc"}})
	s.Client.Data = data(t, ca, pki.Leaf{})
	for says, names := range map[string][]string{
		"":                                       made.Names,
		"alternative names lack db.corp.example": {"basic-tidb.shop.svc", "*.db.corp.example"},
		"alternative names lack *.db.corp.example":    {"basic-tidb.shop.svc", "db.corp.example", "a.db.corp.example"},
		"alternative names lack basic-tidb.shop.svc:": {"db.corp.example", "*.db.corp.example"},
	} {
		s.MySQL = Secret{Name: "mine", Data: data(t, ca, pki.Leaf{Names: names})}
		o := s.Judge(g, pdGroup(&v1alpha1.PDTLS{}), nil, now)
		assert.Contains(t, o.Message, says)
		assert.Equal(t, says == "", o.Kind == step.KindDone, o.Message)
	}
}

func TestSEC01APauseThatKeepsACertificateFromBeingSignedIsNamed(t *testing.T) {
	const pause = "nothing is signed while PDGroup basic-pd is paused: set spec.paused to false: kubectl -n shop edit pdgroup basic-pd"
	ca := authority(t)
	ending := data(t, ca, pki.Leaf{Names: sans(), From: now.Add(-9 * time.Hour), Until: now.Add(time.Hour)})
	for name, source := range map[string]v1alpha1.CertificateSource{
		"a CA of the cluster's own": {SelfSigned: &v1alpha1.SelfSigned{}}, "an issuer": {Issuer: &v1alpha1.IssuerReference{Name: "corp"}},
	} {
		pd := madeBy(source)
		assert.NotContains(t, SecretsFor(pd, pd).Judge(pd, pd, nil, now).Message, "paused", name)
		pd.Spec.Paused = true
		s := SecretsFor(pd, pd)
		assert.Contains(t, s.Judge(pd, pd, nil, now).Message, "Secret basic-pd-cluster-secret does not exist yet: "+pause, name)
		s.Member.Data, s.Client.Data = ending, ending
		if source.Issuer == nil {
			assert.Contains(t, s.DescribeExpiry(pd, pd, now), "and it was not renewed: "+pause, name)
		} else {
			assert.Contains(t, s.DescribeExpiry(pd, pd, now), "Issuer corp of PDGroup basic-pd has not signed it yet", "cert-manager renews all the same")
		}
	}
}
