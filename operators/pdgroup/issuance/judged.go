package issuance

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// judged is what was found of Secrets. To verify signatures costs more than all else of a
// plan, so it is done when Secrets are read, and not for each plan.
type judged struct {
	// authority is the CA of the cluster's own, or unusable says why it is none. Of no use
	// while there is no Secret of it.
	authority Authority
	unusable  error
	// renewals are why the certificates of Secrets are to be signed again, by the Secrets' names.
	renewals map[string]verdict.Reason
	// signed are the Secrets by which members trust each other.
	signed []*corev1.Secret
}

// Judge returns what was observed with its Secrets judged at a time. It is pure.
func (o Observed) Judge(pd *v1alpha1.PDGroup, now time.Time) Observed {
	out := &judged{renewals: map[string]verdict.Reason{}, signed: listSignedSecrets(pd, o, now)}
	ca := o.Secrets[v1alpha1.CASecretName(pd)]
	if ca != nil {
		if out.authority, out.unusable = ReadAuthority(ca.Data); out.unusable == nil {
			out.unusable = out.authority.check(now)
		}
	}
	for _, request := range o.Requests {
		switch secret := o.Secrets[request.Secret]; {
		case v1alpha1.SourceOf(pd).SelfSigned == nil || out.unusable != nil:
		case secret == nil:
			out.renewals[request.Secret] = verdict.NewReason("it does not exist")
		case ca == nil:
			out.renewals[request.Secret] = verdict.NewReason("the CA is new")
		default:
			out.renewals[request.Secret] = renewalReason(request, secret, out.authority, now)
		}
	}
	o.judged = out
	return o
}

// renewalReason says why a certificate is to be signed again by a CA.
func renewalReason(request certificate.Request, secret *corev1.Secret, by Authority, now time.Time) verdict.Reason {
	// What ca.crt of it says does not count: that is written without another certificate.
	held := maps.Clone(secret.Data)
	if held != nil {
		held[v1alpha1.TLSKeyCA] = by.trusted
	}
	pair, err := certificate.Parse(held)
	if err == nil {
		err = request.CheckPair(pair, now)
	}
	if err != nil {
		return verdict.NewReason(err.Error())
	}
	leaf := pair.Leaf()
	switch life := leaf.NotAfter.Sub(leaf.NotBefore); {
	case !by.hasSigned(leaf):
		return verdict.NewReason("another CA has signed it")
	case leaf.NotAfter.Equal(by.certificate.NotAfter): // another one would end with its CA, too
	case now.After(leaf.NotBefore.Add(life * 2 / 3)):
		return verdict.NewReason("two thirds of its life are over")
	}
	return verdict.Reason{}
}

// listSignedSecrets are the Secrets that were made for a cluster, and by which its members trust
// each other. Those that have ended do not count.
func listSignedSecrets(pd *v1alpha1.PDGroup, o Observed, now time.Time) []*corev1.Secret {
	var out []*corev1.Secret
	for _, request := range o.Requests {
		if secret := o.Secrets[request.Secret]; secret != nil && wasMadeFor(secret, pd) && !hasEnded(secret, now) {
			out = append(out, secret)
		}
	}
	return out
}

// hasEnded reports whether the certificate of a Secret has expired.
func hasEnded(secret *corev1.Secret, now time.Time) bool {
	all := parseCertificates(secret.Data[v1alpha1.TLSKeyCert])
	return len(all) > 0 && now.After(all[0].NotAfter)
}
