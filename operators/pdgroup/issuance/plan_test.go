package issuance

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const (
	memberSecret   = "basic-pd-cluster-secret"     //nolint:gosec // a name
	operatorSecret = "basic-cluster-client-secret" //nolint:gosec // a name
	kvSecret       = "basic-tikv-cluster-secret"   //nolint:gosec // a name
	caSecret       = "basic-pd-ca-secret"          //nolint:gosec // a name
)

// world is a cluster of PD and TiKV, and what there is of its certificates.
func world(source v1alpha1.CertificateSource) (*v1alpha1.PDGroup, Observed) {
	pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "shop", UID: "pd"}}
	pd.Spec.TLS = &v1alpha1.PDTLS{CertificateSource: source}
	tikv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: "shop", UID: "kv"}}
	tikv.Spec.TLS, tikv.Spec.PDGroup.Name = &v1alpha1.TLS{}, "basic-pd"
	return pd, Observed{
		Requests: certificate.Requests(pd, []v1alpha1.Group{pd, tikv}),
		Secrets:  map[string]*corev1.Secret{}, Certificates: map[string]*Certificate{},
	}
}

func own() v1alpha1.CertificateSource {
	return v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}
}

func issuer() v1alpha1.CertificateSource {
	return v1alpha1.CertificateSource{Issuer: &v1alpha1.IssuerReference{Name: "corp"}}
}

// carried is what there is after a plan was carried out.
func carried(t *testing.T, pd *v1alpha1.PDGroup, o Observed, p Plan) Observed {
	t.Helper()
	o.Secrets = maps.Clone(o.Secrets)
	if p.MakesCA {
		held, err := NewAuthority(pd.Name, now)
		require.NoError(t, err)
		o.Secrets[caSecret] = &corev1.Secret{ObjectMeta: renderMetadata(certificate.Request{Secret: caSecret, Owner: pd}), Data: held}
		p.Authority, err = ReadAuthority(held)
		require.NoError(t, err)
	}
	for _, w := range p.Secrets {
		secret := &corev1.Secret{ObjectMeta: renderMetadata(w.Request)}
		if w.Live != nil {
			secret = w.Live.DeepCopy()
		}
		if w.Signs {
			held, err := p.Authority.Sign(w.Request, now)
			require.NoError(t, err)
			secret.Data = held
		} else {
			secret.Data[v1alpha1.TLSKeyCA] = p.Authority.trusted
		}
		o.Secrets[w.Request.Secret] = secret
	}
	return o
}

// certified is a cluster with a CA of its own, and all certificates.
func certified(t *testing.T) (*v1alpha1.PDGroup, Observed) {
	t.Helper()
	pd, o := world(own())
	return pd, carried(t, pd, o, MakePlan(pd, o, now))
}

func TestSEC01AClusterMakesItsCAOnceAndSignsWithIt(t *testing.T) {
	pd, o := world(own())
	p := MakePlan(pd, o, now)
	assert.True(t, p.MakesCA)
	assert.Len(t, p.Secrets, 3)
	assert.Equal(t, step.KindDone, p.Outcome.Kind)
	o = carried(t, pd, o, p)
	p = MakePlan(pd, o, now)
	assert.False(t, p.MakesCA, "once")
	assert.Empty(t, p.Secrets)
	for _, r := range o.Requests {
		assert.NoError(t, r.CheckData(o.Secrets[r.Secret].Data, now))
	}
	assert.Equal(t, o.Secrets[memberSecret].Data[v1alpha1.TLSKeyCA], o.Secrets[caSecret].Data[v1alpha1.TLSKeyCert])
	assert.NotEqual(t, o.Secrets[memberSecret].Data[v1alpha1.TLSKeyKey], o.Secrets[caSecret].Data[v1alpha1.TLSKeyKey], "the key of the CA is in no other Secret")
	assert.Empty(t, o.Secrets[kvSecret].OwnerReferences[0].BlockOwnerDeletion)
	assert.Equal(t, "basic-tikv", o.Secrets[kvSecret].OwnerReferences[0].Name)
}

func TestSEC01ACertificateIsSignedAgainWhenTwoThirdsOfItsLifeAreOver(t *testing.T) {
	pd, o := certified(t)
	for days, want := range map[int]int{240: 0, 245: 3} {
		p := MakePlan(pd, o, now.AddDate(0, 0, days))
		assert.Len(t, p.Secrets, want, "after %d days", days)
		for _, w := range p.Secrets {
			assert.True(t, w.Signs)
			assert.Equal(t, "two thirds of its life are over", w.Why)
		}
	}
	last := MakePlan(pd, o, now.AddDate(9, 6, 0)).Authority
	held, err := last.Sign(o.Requests[0], now.AddDate(9, 6, 0))
	require.NoError(t, err)
	pair, err := certificate.Parse(held)
	require.NoError(t, err)
	assert.Equal(t, last.certificate.NotAfter, pair.Leaf().NotAfter, "none outlives its CA")
}

func TestSEC01AnInvalidCertificateIsSignedAgain(t *testing.T) {
	stranger, err := NewAuthority("other", now)
	require.NoError(t, err)
	another, err := ReadAuthority(stranger)
	require.NoError(t, err)
	for why, spoil := range map[string]func(*testing.T, Observed){
		"it does not exist":             func(_ *testing.T, o Observed) { delete(o.Secrets, kvSecret) },
		"key tls.key: it is missing":    func(_ *testing.T, o Observed) { delete(o.Secrets[kvSecret].Data, "tls.key") },
		"lack basic-tikv-peer.shop.svc": func(_ *testing.T, o Observed) { o.Secrets[kvSecret].Data = maps.Clone(o.Secrets[operatorSecret].Data) },
		"has not signed it":             func(t *testing.T, o Observed) { o.Secrets[kvSecret].Data = leafBy(t, another, o) },
	} {
		pd, o := certified(t)
		spoil(t, o)
		p := MakePlan(pd, o, now)
		if assert.Len(t, p.Secrets, 1, why) {
			assert.True(t, p.Secrets[0].Signs)
			assert.Contains(t, p.Secrets[0].Why, why)
			assert.Equal(t, kvSecret, p.Secrets[0].Request.Secret)
		}
	}
	pd, o := certified(t)
	o.Secrets[kvSecret].Data["ca.crt"] = bytes.Join([][]byte{stranger["ca.crt"], o.Secrets[kvSecret].Data["ca.crt"]}, nil)
	p := MakePlan(pd, o, now)
	if assert.Len(t, p.Secrets, 1) {
		assert.False(t, p.Secrets[0].Signs, "the certificate itself is good")
	}
}

func leafBy(t *testing.T, by Authority, o Observed) map[string][]byte {
	t.Helper()
	for _, r := range o.Requests {
		if r.Secret == kvSecret {
			held, err := by.Sign(r, now)
			require.NoError(t, err)
			return held
		}
	}
	return nil
}

// P3: nothing of a user is written over, and a lost CA is not recreated.
func TestSEC01SecretsThatTheClusterDidNotMakeAreLeftAlone(t *testing.T) {
	pd, o := world(own())
	o.Secrets[kvSecret] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kvSecret}, Data: map[string][]byte{"tls.crt": []byte("mine")}}
	p := MakePlan(pd, o, now)
	assert.Len(t, p.Secrets, 2)
	assert.Equal(t, step.KindStall, p.Outcome.Kind)
	assert.Contains(t, p.Outcome.Message, "Secret basic-tikv-cluster-secret was not made for spec.tls of PDGroup basic-pd, and is left alone: delete it, if no pod runs with it or the CA is the same (docs/tasks/tls.md): kubectl -n shop delete secret basic-tikv-cluster-secret, or name it in secretName")

	pd, o = certified(t)
	delete(o.Secrets, caSecret)
	p = MakePlan(pd, o, now)
	assert.False(t, p.MakesCA)
	assert.Empty(t, p.Secrets)
	assert.Equal(t, step.KindDone, p.Outcome.Kind, "what runs goes on")
	delete(o.Secrets, kvSecret)
	p = MakePlan(pd, o, now)
	assert.False(t, p.MakesCA)
	assert.Contains(t, p.Outcome.Message, "Secret basic-pd-ca-secret with the CA that has signed Secret basic-pd-cluster-secret is gone and is not recreated: members would stop trusting each other's certificates: put it back, or see docs/tasks/tls.md if there is no copy: kubectl")
	clear(o.Secrets)
	p = MakePlan(pd, o, now)
	assert.True(t, p.MakesCA, "nothing trusts the former one any more")
	assert.Len(t, p.Secrets, len(o.Requests))

	pd, o = certified(t)
	delete(o.Secrets, kvSecret)
	o.Secrets[caSecret].Data["tls.key"] = []byte("x")
	assert.Contains(t, MakePlan(pd, o, now).Outcome.Message, "Secret basic-pd-ca-secret with the CA, keys tls.crt and tls.key:")
	pd, o = certified(t)
	stranger, err := NewAuthority("other", now)
	require.NoError(t, err)
	o.Secrets[caSecret].Data = stranger
	delete(o.Secrets, kvSecret)
	p = MakePlan(pd, o, now)
	assert.Empty(t, p.Secrets)
	assert.Contains(t, p.Outcome.Message, "Secret basic-pd-ca-secret has another CA than Secret basic-pd-cluster-secret trusts")
}

// Who has a CA may have the cluster sign with it.
func TestSEC01ACAOfTheUserSigns(t *testing.T) {
	pd, o := world(own())
	brought, err := NewAuthority("mine", now)
	require.NoError(t, err)
	o.Secrets[caSecret] = &corev1.Secret{Data: brought}
	p := MakePlan(pd, o, now)
	assert.False(t, p.MakesCA)
	assert.Len(t, p.Secrets, 3)
	assert.Empty(t, MakePlan(pd, carried(t, pd, o, p), now).Secrets)
}

// A CA that has ended signs nothing that any member would take: its certificates would be
// written over and over.
func TestSEC01ACAThatSignsNothingOfUseIsReported(t *testing.T) {
	pd, o := certified(t)
	ended := now.AddDate(authorityYears, 0, 1)
	p := MakePlan(pd, o, ended)
	assert.Empty(t, p.Secrets)
	assert.Equal(t, step.KindStall, p.Outcome.Kind)
	assert.Contains(t, p.Outcome.Message, "Secret basic-pd-ca-secret with the CA, key tls.crt: it expired at 2036-11-26T12:00:00Z: fix it: kubectl -n shop edit secret basic-pd-ca-secret")

	another, err := NewAuthority("other", ended)
	require.NoError(t, err)
	ca := o.Secrets[caSecret].DeepCopy()
	ca.Data, o.Secrets[caSecret] = another, ca
	assert.Len(t, MakePlan(pd, o, ended).Secrets, 3, "no member trusts another one any more: nothing is lost by another CA")
	delete(o.Secrets, caSecret)
	assert.True(t, MakePlan(pd, o, ended).MakesCA, "nor by a new one")

	pd, o = certified(t)
	o.Secrets[caSecret].Data["ca.crt"] = another["ca.crt"]
	p = MakePlan(pd, o, now)
	assert.Empty(t, p.Secrets, "members would be told to trust what has not signed their certificates")
	delete(o.Secrets, kvSecret)
	assert.Contains(t, MakePlan(pd, o, now).Outcome.Message, "Secret basic-pd-ca-secret with the CA, key ca.crt: the CA of key tls.crt is not in it: fix it:")
}

// Nothing outlives its CA: what ends with it is not signed again and again in its last hour.
func TestSEC01ACertificateThatEndsWithItsCAIsNotSignedAgain(t *testing.T) {
	pd, o := certified(t)
	for _, left := range []time.Duration{48 * time.Hour, time.Hour, time.Minute} {
		at := now.AddDate(authorityYears, 0, 0).Add(-left)
		by, err := ReadAuthority(o.Secrets[caSecret].Data)
		require.NoError(t, err)
		for _, request := range o.Requests {
			o.Secrets[request.Secret].Data, err = by.Sign(request, at)
			require.NoError(t, err)
		}
		assert.Empty(t, MakePlan(pd, o, at.Add(left*9/10)).Secrets, left)
	}
}

func TestSEC01NothingIsMadeWhilePausedOrDeleted(t *testing.T) {
	pd, o := world(own())
	pd.Spec.Paused = true
	p := MakePlan(pd, o, now)
	assert.False(t, p.MakesCA)
	assert.Empty(t, p.Secrets)
	pd.Spec.Paused, pd.DeletionTimestamp = false, &metav1.Time{Time: now}
	assert.False(t, MakePlan(pd, o, now).MakesCA)
	pd, o = world(issuer())
	pd.Spec.Paused = true
	assert.Empty(t, MakePlan(pd, o, now).Certificates)
}

func TestSEC01ACertificateRequestPassesTheChecks(t *testing.T) {
	pd, o := world(issuer())
	p := MakePlan(pd, o, now)
	require.Len(t, p.Certificates, 3)
	for _, one := range p.Certificates {
		spec := one.Desired.Object["spec"].(map[string]any)
		assert.Equal(t, one.Desired.GetName(), spec["secretName"])
		assert.Equal(t, map[string]any{"name": "corp", "kind": "Issuer", "group": "cert-manager.io"}, spec["issuerRef"])
		switch one.Desired.GetName() {
		case operatorSecret:
			assert.Nil(t, spec["dnsNames"])
			assert.Equal(t, []any{"digital signature", "key encipherment", "client auth"}, spec["usages"])
		case kvSecret:
			assert.Equal(t, []any{"basic-tikv-peer.shop.svc", "*.basic-tikv-peer.shop.svc"}, spec["dnsNames"])
			assert.Equal(t, []any{"digital signature", "key encipherment", "server auth", "client auth"}, spec["usages"])
			assert.Equal(t, "basic-tikv", one.Desired.GetOwnerReferences()[0].Name)
		}
	}
}

// made returns a Certificate as it would be in the API server.
func made(pd *v1alpha1.PDGroup, o Observed, age time.Duration, conditions ...map[string]any) *Certificate {
	u := &unstructured.Unstructured{}
	for _, one := range MakePlan(pd, Observed{Requests: o.Requests}, now).Certificates {
		if one.Desired.GetName() == memberSecret {
			u = one.Desired.DeepCopy()
		}
	}
	u.SetCreationTimestamp(metav1.NewTime(now.Add(-age)))
	u.SetGeneration(1)
	var list []any
	for _, c := range conditions {
		list = append(list, c)
	}
	u.Object["status"] = map[string]any{"conditions": list}
	return readCertificate(u)
}

func TestSEC01TheReasonWhyAnIssuerHasNotSignedIsReported(t *testing.T) {
	look := ": kubectl -n shop describe certificate " + memberSecret
	said := func(kind, status, message string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "X", "message": message, "observedGeneration": int64(1)}
	}
	for name, c := range map[string]struct {
		spoil   func(pd *v1alpha1.PDGroup, o *Observed)
		says    string
		blocked bool
	}{
		"no cert-manager": {func(_ *v1alpha1.PDGroup, o *Observed) { o.Hindered = hinderedKind }, "this Kubernetes has no Certificates of cert-manager.io: install cert-manager", true},
		"no right":        {func(_ *v1alpha1.PDGroup, o *Observed) { o.Hindered = hinderedCertificates }, "install it with components/tls-issuer", true},
		"no issuer":       {func(_ *v1alpha1.PDGroup, o *Observed) { o.Issuer.Absent = true }, "Issuer corp, which spec.tls.issuer names, does not exist: create it, and look" + look, true},
		"an issuer in need": {func(_ *v1alpha1.PDGroup, o *Observed) {
			o.Issuer.Ready = &metav1.Condition{Status: metav1.ConditionFalse, Message: "no\nsecret"}
		}, "Issuer corp is not ready to sign it (no secret)" + look, true},
		"it was just made": {func(*v1alpha1.PDGroup, *Observed) {}, "Issuer corp has not signed it yet" + look, false},
		"it takes a while": {func(pd *v1alpha1.PDGroup, o *Observed) { o.Certificates[memberSecret] = made(pd, *o, time.Second) }, "Issuer corp has not signed it yet" + look, false},
		"it takes too long": {func(pd *v1alpha1.PDGroup, o *Observed) {
			o.Certificates[memberSecret] = made(pd, *o, 2*time.Minute, said("Ready", "False", "still waiting"))
		}, "Issuer corp has not signed it yet (still waiting)" + look, true},
		"it was refused": {func(pd *v1alpha1.PDGroup, o *Observed) {
			o.Certificates[memberSecret] = made(pd, *o, 0, said("Issuing", "False", "denied"))
		}, "Issuer corp has not signed it (denied)" + look, true},
		"it signs otherwise": {func(pd *v1alpha1.PDGroup, o *Observed) {
			o.Certificates[memberSecret] = made(pd, *o, 0, said("Ready", "True", ""))
		}, "Issuer corp has signed it, but it is not usable" + look, true},
		"a user's Certificate": {func(pd *v1alpha1.PDGroup, o *Observed) {
			o.Certificates[memberSecret] = made(pd, *o, 0)
			o.Certificates[memberSecret].Object.SetLabels(nil)
		}, "Certificate basic-pd-cluster-secret was not made for spec.tls of PDGroup basic-pd, and is left alone: delete it: kubectl -n shop delete certificate basic-pd-cluster-secret", true},
		"a user's Secret": {func(_ *v1alpha1.PDGroup, o *Observed) { o.Secrets[memberSecret] = &corev1.Secret{} }, "Secret basic-pd-cluster-secret was not made for spec.tls of PDGroup basic-pd, and is left alone: delete it, if no pod runs with it or the CA is the same (docs/tasks/tls.md): kubectl", true},
	} {
		t.Run(name, func(t *testing.T) {
			pd, o := world(issuer())
			c.spoil(pd, &o)
			p := MakePlan(pd, o, now)
			s := certificate.SecretsFor(pd, pd)
			p.ExplainMissing(&s)
			assert.Contains(t, s.Member.Said, c.says)
			assert.Equal(t, c.blocked, s.Member.Blocked)
			assert.Equal(t, c.blocked, p.Outcome.Kind == step.KindStall)
		})
	}
}

func TestSEC01AValidSecretNeedsNoAnswerOfTheIssuer(t *testing.T) {
	pd, o := certified(t)
	pd.Spec.TLS.CertificateSource = issuer()
	o.Issuer.Absent = true
	for _, secret := range o.Secrets {
		secret.Annotations = map[string]string{annotationCertificate: secret.Name}
	}
	assert.Equal(t, step.KindDone, MakePlan(pd, o, now).Outcome.Kind)
}
