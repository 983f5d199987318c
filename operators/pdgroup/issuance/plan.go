package issuance

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Plan is what is to be written so that the certificates of a cluster are there.
type Plan struct {
	// MakesCA says that the CA is to be made.
	MakesCA bool
	// Authority signs; of no use while MakesCA.
	Authority Authority
	// Secrets to write.
	Secrets []Write
	// Certificates to apply.
	Certificates []Apply
	// CA is what is written into the Secret of the CA; nil for nothing.
	CA *Rotate
	// Rotation is how far another CA has taken its place; nil while none does.
	Rotation *v1alpha1.CARotation
	// Outcome reports a certificate that only a user can have made.
	Outcome step.Outcome

	words map[string]word
}

// Write is a Secret to write.
type Write struct {
	Request certificate.Request
	// Live Secret, nil for none.
	Live *corev1.Secret
	// Signs says that a new certificate is signed, else only ca.crt is written.
	Signs bool
	// Why it is written.
	Why string
}

// Apply is a Certificate to apply.
type Apply struct{ Desired, Live *unstructured.Unstructured }

// word is what is known of why a Secret is not there; blocked says that only a user can
// help.
type word struct {
	said    string
	blocked bool
}

// MakePlan plans the certificates of a cluster. It is pure.
func MakePlan(pd *v1alpha1.PDGroup, o Observed, now time.Time) Plan {
	p := Plan{Outcome: step.Done(), words: map[string]word{}}
	source := v1alpha1.SourceOf(pd)
	if o.judged == nil {
		o = o.Judge(pd, now)
	}
	switch {
	case pd.DeletionTimestamp != nil || len(o.Requests) == 0:
		return p
	case o.Hindered != "":
		p.block(o.Requests, o.Hindered)
	case source.Issuer != nil:
		for _, request := range o.Requests {
			p.request(pd, o, request, now)
		}
	default:
		p.sign(pd, o, now)
	}
	for _, request := range o.Requests {
		secret := o.Secrets[request.Secret]
		if w := p.words[request.Secret]; w.blocked && (secret == nil || request.CheckData(secret.Data, now) != nil) {
			p.Outcome = step.Worst(p.Outcome, certificate.Stall(fmt.Sprintf("Secret %s: %s", request.Secret, w.said)))
		}
	}
	if pd.Spec.Paused {
		p.MakesCA, p.Secrets, p.Certificates, p.CA = false, nil, nil, nil
	}
	return p
}

// ExplainMissing has the Secrets of a group say why they are not there.
func (p Plan) ExplainMissing(s *certificate.Secrets) {
	for _, secret := range []*certificate.Secret{&s.Member, &s.Client} {
		w := p.words[secret.Name]
		secret.Said, secret.Blocked = w.said, w.blocked
	}
}

func (p *Plan) block(requests []certificate.Request, why string) {
	for _, request := range requests {
		p.words[request.Secret] = word{why, true}
	}
}

// sign plans what the CA of the cluster's own signs.
func (p *Plan) sign(pd *v1alpha1.PDGroup, o Observed, now time.Time) {
	name := v1alpha1.CASecretName(pd)
	ca, signed := o.Secrets[name], o.judged.signed
	edit := fmt.Sprintf("kubectl -n %s edit secret %s", pd.Namespace, name)
	switch {
	case ca == nil && len(signed) > 0:
		p.block(o.Requests, fmt.Sprintf("Secret %s with the CA that has signed Secret %s is gone and is not recreated: members would stop trusting each other's certificates: put it back, or see docs/tasks/tls.md if there is no copy: kubectl -n %s create secret generic %s --from-file=ca.crt=FILE --from-file=tls.crt=FILE --from-file=tls.key=FILE",
			name, signed[0].Name, pd.Namespace, name))
		return
	case ca == nil:
		p.MakesCA = true
	default:
		if p.Authority = o.judged.authority; o.judged.unusable != nil {
			p.block(o.Requests, fmt.Sprintf("Secret %s with the CA, %v: fix it: %s", name, o.judged.unusable, edit))
			return
		}
		if len(signed) > 0 && !slices.ContainsFunc(signed, p.Authority.isTrustedBy) {
			p.block(o.Requests, fmt.Sprintf("Secret %s has another CA than Secret %s trusts: members would stop trusting each other's certificates: put the former one back: %s", name, signed[0].Name, edit))
			return
		}
	}
	for _, request := range o.Requests {
		secret := o.Secrets[request.Secret]
		if secret != nil && !wasMadeFor(secret, pd) {
			p.words[request.Secret] = word{describeTakenName("Secret", request.Secret, pd) + ", or name it in secretName", true}
			continue
		}
		if why := o.judged.renewals[request.Secret]; why.IsGiven() {
			p.Secrets = append(p.Secrets, Write{Request: request, Live: secret, Signs: true, Why: why.Text()})
		} else if !bytes.Equal(secret.Data[v1alpha1.TLSKeyCA], p.Authority.trusted) {
			p.Secrets = append(p.Secrets, Write{Request: request, Live: secret, Why: "other CAs are trusted"})
		}
	}
	if ca != nil {
		p.rotate(pd, o, now)
	}
}

// request plans a Certificate of cert-manager, and says how far it is.
func (p *Plan) request(pd *v1alpha1.PDGroup, o Observed, request certificate.Request, now time.Time) {
	name, secret, have := request.Secret, o.Secrets[request.Secret], o.Certificates[request.Secret]
	switch {
	case have != nil && !wasMadeFor(have.Object, pd):
		p.words[name] = word{describeTakenName(v1alpha1.KindCertificate, name, pd) + ", or name its Secret in secretName", true}
		return
	case have == nil && secret != nil && secret.Annotations[annotationCertificate] != name:
		p.words[name] = word{describeTakenName("Secret", name, pd) + ", or name it in secretName", true}
		return
	}
	next := Apply{Desired: renderCertificate(pd, request)}
	if have != nil {
		next.Live = have.Object
	}
	p.Certificates = append(p.Certificates, next)
	p.words[name] = describeCertificateWait(pd, o, have, now, name)
}

// describeCertificateWait says what a Certificate waits for.
func describeCertificateWait(pd *v1alpha1.PDGroup, o Observed, have *Certificate, now time.Time, name string) word {
	by := v1alpha1.SourceOf(pd).Issuer
	issuer := by.KindOrDefault() + " " + by.Name
	look := fmt.Sprintf(": kubectl -n %s describe certificate %s", pd.Namespace, name)
	switch {
	case o.Issuer.Absent:
		return word{issuer + ", which spec.tls.issuer names, does not exist: create it, and look" + look, true}
	case o.Issuer.Ready != nil && o.Issuer.Ready.Status != metav1.ConditionTrue:
		return word{fmt.Sprintf("%s is not ready to sign it (%s)%s", issuer, oneLine(o.Issuer.Ready.Message), look), true}
	case have == nil:
		return word{issuer + " has not signed it yet" + look, false}
	case have.Failed != nil:
		return word{fmt.Sprintf("%s has not signed it (%s)%s", issuer, oneLine(have.Failed.Message), look), true}
	case have.Ready != nil && have.Ready.Status == metav1.ConditionTrue && have.Ready.ObservedGeneration == have.Object.GetGeneration():
		return word{issuer + " has signed it, but it is not usable" + look, true}
	}
	said := issuer + " has not signed it yet"
	if have.Ready != nil {
		said += " (" + oneLine(have.Ready.Message) + ")"
	}
	return word{said + look, now.Sub(have.Object.GetCreationTimestamp().Time) > issuerTimeout}
}

// renderCertificate is the Certificate of a request.
func renderCertificate(pd *v1alpha1.PDGroup, request certificate.Request) *unstructured.Unstructured {
	by := v1alpha1.SourceOf(pd).Issuer
	list := func(of []string) []any {
		var out []any
		for _, one := range of {
			out = append(out, one)
		}
		return out
	}
	spec := map[string]any{
		"secretName": request.Secret,
		"commonName": request.CommonName(),
		"usages":     list(append([]string{"digital signature", "key encipherment"}, request.Usages()...)),
		"issuerRef":  map[string]any{"name": by.Name, "kind": by.KindOrDefault(), "group": by.GroupOrDefault()},
	}
	if len(request.Names) > 0 {
		spec["dnsNames"] = list(request.Names)
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(certificateKind())
	own := renderMetadata(request)
	out.SetName(own.Name)
	out.SetNamespace(own.Namespace)
	out.SetLabels(own.Labels)
	out.SetOwnerReferences(own.OwnerReferences)
	return out
}

// renderMetadata is the metadata of what is made for a request.
func renderMetadata(request certificate.Request) metav1.ObjectMeta {
	out := workload.Meta(request.Owner, request.Secret)
	out.OwnerReferences[0].BlockOwnerDeletion = nil // of another kind than this operator's
	return out
}

// wasMadeFor reports whether an object was made for a cluster.
func wasMadeFor(o metav1.Object, pd *v1alpha1.PDGroup) bool {
	return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && o.GetLabels()[v1alpha1.LabelCluster] == pd.Name
}

// describeTakenName says that an object of another owner has a name that is needed. Members that run with
// a user's Secret would not trust one that another CA has signed.
func describeTakenName(kind, name string, pd *v1alpha1.PDGroup) string {
	when := ""
	if kind == "Secret" {
		when = ", if no pod runs with it or the CA is the same (docs/tasks/tls.md)"
	}
	return fmt.Sprintf("%s %s was not made for spec.tls of PDGroup %s, and is left alone: delete it%s: kubectl -n %s delete %s %s",
		kind, name, pd.Name, when, pd.Namespace, strings.ToLower(kind), name)
}

// longestMessage bounds a message of another controller.
const longestMessage = 200

// oneLine is a message of another controller as part of a line.
func oneLine(message string) string {
	line := string(bytes.Join(bytes.Fields([]byte(message)), []byte(" ")))
	return cmp.Or(line[:min(len(line), longestMessage)], "it says nothing")
}
