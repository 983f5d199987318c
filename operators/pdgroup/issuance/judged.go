package issuance

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// judged is what was found of Secrets. To verify signatures costs more than all else of a
// plan, so it is done when Secrets are read, and not for each plan.
type judged struct {
	// authority is the CA of the cluster's own, or unusable says why it is none. Of no use
	// while there is no Secret of it.
	authority Authority
	unusable  error
	// due says why the certificate of a Secret is to be signed again, empty if it is not.
	due map[string]string
}

// Judge returns what was observed with its Secrets judged at a time. It is pure.
func (o Observed) Judge(pd *v1alpha1.PDGroup, now time.Time) Observed {
	out := &judged{due: map[string]string{}}
	ca := o.Secrets[v1alpha1.CASecretName(pd)]
	if ca != nil {
		out.authority, out.unusable = ReadAuthority(ca.Data)
	}
	for _, request := range o.Requests {
		switch secret := o.Secrets[request.Secret]; {
		case v1alpha1.SourceOf(pd).SelfSigned == nil || out.unusable != nil:
		case secret == nil:
			out.due[request.Secret] = "it does not exist"
		case ca == nil:
			out.due[request.Secret] = "the CA is new"
		default:
			out.due[request.Secret] = due(request, secret, out.authority, now)
		}
	}
	o.judged = out
	return o
}

// due says why a certificate is to be signed again by a CA; empty if it is not.
func due(request certificate.Request, secret *corev1.Secret, by Authority, now time.Time) string {
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
		return err.Error()
	}
	leaf := pair.Leaf()
	switch life := leaf.NotAfter.Sub(leaf.NotBefore); {
	case !by.hasSigned(leaf):
		return "another CA has signed it"
	case now.After(leaf.NotBefore.Add(life * 2 / 3)):
		return "two thirds of its life are over"
	}
	return ""
}
