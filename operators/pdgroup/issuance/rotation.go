package issuance

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Rotate is what is written into the Secret of the CA. Without Data another CA is made, and
// put beside the one that signs.
type Rotate struct {
	Live *corev1.Secret
	Data map[string][]byte
	Why  string
}

// rotate plans how another CA takes the place of the cluster's own. The phase is what the
// Secret of the CA says. It goes on when every member has started with what the phase has
// written, so that at each moment every two members trust each other.
func (p *Plan) rotate(pd *v1alpha1.PDGroup, o Observed, now time.Time) {
	ca := o.Secrets[v1alpha1.CASecretName(pd)]
	next := p.mayContinueRotation(pd, o)
	in := func(phase v1alpha1.CARotationPhase) {
		p.Rotation = &v1alpha1.CARotation{Phase: phase, Message: next.Reason()}
	}
	switch {
	case len(ca.Data[v1alpha1.NextKeyCert]) > 0:
		in(v1alpha1.RotationTrustBoth)
		if next.IsAllowed() {
			p.CA = &Rotate{Live: ca, Data: signWithNext(ca.Data), Why: "NewLeaves: every member trusts both CAs, and the new one signs from now on"}
		}
	case len(ca.Data[v1alpha1.PreviousKeyCert]) > 0:
		in(v1alpha1.RotationNewLeaves)
		if next.IsAllowed() {
			p.CA = &Rotate{Live: ca, Data: distrustPrevious(ca.Data), Why: "TrustNew: every member has a certificate of the new CA, and the previous CA is no longer trusted"}
		}
	case isRotationRequested(pd, ca) && !wasMadeFor(ca, pd):
		p.Outcome = certificate.Stall(fmt.Sprintf("Secret %s was not made by the operators, which do not replace its CA: to have them do it: kubectl -n %s label secret %s %s=%s %s=%s",
			ca.Name, pd.Namespace, ca.Name, v1alpha1.LabelManagedBy, v1alpha1.ManagedBy, v1alpha1.LabelCluster, pd.Name))
	case (isRotationRequested(pd, ca) || p.Authority.isEnding(now) && wasMadeFor(ca, pd)) && next.IsAllowed(): // all is well
		p.CA = &Rotate{Live: ca, Why: "TrustBoth: another CA was made, and is trusted beside the one that signs, which ends at " + p.Authority.certificate.NotAfter.UTC().Format(time.RFC3339)}
	case pd.Status.CARotation != nil && !next.IsAllowed():
		in(v1alpha1.RotationTrustNew)
	}
	if p.Rotation != nil && pd.Spec.Paused {
		p.Rotation.Message = "spec.paused of the PDGroup"
	}
}

// isRotationRequested reports whether another CA is to take the place of the one that signs.
func isRotationRequested(pd *v1alpha1.PDGroup, ca *corev1.Secret) bool {
	at := v1alpha1.SourceOf(pd).SelfSigned.RotatedAt
	return at != "" && at != ca.Annotations[v1alpha1.AnnotationRotatedAt]
}

// lastPart of a CA's life is when another one takes its place by itself, as that of Istio does,
// which lives for ten years, too: while it still signs certificates that last a year.
const lastPart = 5

// isEnding reports whether the last part of a CA's life has begun.
func (a Authority) isEnding(now time.Time) bool {
	life := a.certificate.NotAfter.Sub(a.certificate.NotBefore)
	return a.certificate.NotAfter.Sub(now) < life/lastPart
}

// mayContinueRotation allows the next step when every group has started with the current
// certificates. A group says what it has read and whether its members run with it in one status.
func (p *Plan) mayContinueRotation(pd *v1alpha1.PDGroup, o Observed) verdict.Verdict {
	if len(p.Secrets) > 0 {
		return verdict.Refuse("Secrets are being written")
	}
	for _, g := range o.Groups {
		if g.GetTLS() == nil {
			continue
		}
		status := g.GetGroupStatus()
		upToDate := gate.FindCurrentCondition(status.Conditions, g.GetGeneration(), v1alpha1.ConditionUpToDate)
		wanted := certificate.SecretsFor(g, pd)
		for _, secret := range []certificate.Secret{wanted.Member, wanted.Client, wanted.MySQL, wanted.Backend} {
			if secret.Made && !slices.ContainsFunc(status.Certificates, func(c v1alpha1.CertificateStatus) bool {
				return c.SecretName == secret.Name && o.Secrets[secret.Name] != nil && c.Trust == certificate.Secret{Data: o.Secrets[secret.Name].Data}.Trust()
			}) {
				return verdict.Refusef("%s %s has not read Secret %s yet", g.GroupKind(), g.GetName(), secret.Name)
			}
		}
		if upToDate == nil || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionUpToDate) {
			return verdict.Refusef("%s %s is not UpToDate", g.GroupKind(), g.GetName())
		}
	}
	return verdict.Allow()
}

// trustBoth are the data of a CA's Secret with another one that is trusted, too. What a user has
// put into ca.crt may end without a line feed, and two certificates in one line are none.
func trustBoth(now, next map[string][]byte) map[string][]byte {
	out := maps.Clone(now)
	out[v1alpha1.TLSKeyCA] = bytes.Join([][]byte{bytes.TrimSpace(now[v1alpha1.TLSKeyCA]), next[v1alpha1.TLSKeyCert]}, []byte("\n"))
	out[v1alpha1.NextKeyCert], out[v1alpha1.NextKeyKey] = next[v1alpha1.TLSKeyCert], next[v1alpha1.TLSKeyKey]
	return out
}

// signWithNext are the data of a CA's Secret when the other one signs.
func signWithNext(now map[string][]byte) map[string][]byte {
	out := maps.Clone(now)
	out[v1alpha1.TLSKeyCert], out[v1alpha1.TLSKeyKey] = now[v1alpha1.NextKeyCert], now[v1alpha1.NextKeyKey]
	out[v1alpha1.PreviousKeyCert] = now[v1alpha1.TLSKeyCert]
	delete(out, v1alpha1.NextKeyCert)
	delete(out, v1alpha1.NextKeyKey)
	return out
}

// distrustPrevious are the data of a CA's Secret when the previous CA is no longer trusted. Others
// that a user has put there stay.
func distrustPrevious(now map[string][]byte) map[string][]byte {
	out := maps.Clone(now)
	previous := parseCertificates(now[v1alpha1.PreviousKeyCert])
	var kept []byte
	for _, one := range parseCertificates(now[v1alpha1.TLSKeyCA]) {
		if !slices.ContainsFunc(previous, one.Equal) {
			kept = append(kept, encodePEM("CERTIFICATE", one.Raw)...)
		}
	}
	out[v1alpha1.TLSKeyCA] = kept
	delete(out, v1alpha1.PreviousKeyCert)
	return out
}
