package issuance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// fresh is for how long what was read of a cluster is not read again, unless one of its groups
// is edited, or something is written.
const fresh = 2 * time.Second

// Reader reads what there is of the certificates of clusters. It may be used concurrently.
type Reader struct {
	live client.Reader
	now  func() time.Time

	mu   sync.Mutex
	read map[types.UID]reading
}

// reading is what was read at a time of groups of some generations.
type reading struct {
	of  string
	at  time.Time
	got Observed
}

// NewReader returns a Reader of the API server.
func NewReader(live client.Reader, now func() time.Time) *Reader {
	return &Reader{live: live, now: now, read: map[types.UID]reading{}}
}

// Read reads what there is of the certificates of a cluster. Nothing is read of one whose
// certificates a person brings.
func (r *Reader) Read(ctx context.Context, pd *v1alpha1.PDGroup, groups []v1alpha1.Group) (Observed, error) {
	out := Observed{Requests: certificate.Requests(pd, groups), Groups: groups, Secrets: map[string]*corev1.Secret{}, Certificates: map[string]*Certificate{}}
	if len(out.Requests) == 0 {
		return out, nil
	}
	now, of := r.now(), generations(groups)
	r.mu.Lock()
	for k, was := range r.read { // what is outdated is not kept: there are keys in it
		if now.Sub(was.at) >= fresh {
			delete(r.read, k)
		}
	}
	was, found := r.read[pd.UID]
	r.mu.Unlock()
	if found && was.of == of {
		was.got.Groups = groups // whose status may be another one by now
		return was.got, nil
	}
	if err := r.observe(ctx, pd, &out); err != nil {
		return out, err
	}
	out = out.Judged(pd, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[pd.UID] = reading{of, now, out}
	return out, nil
}

// Forget has what is known of a cluster read again.
func (r *Reader) Forget(pd *v1alpha1.PDGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, pd.UID)
}

// generations names the versions of groups' specs.
func generations(groups []v1alpha1.Group) string {
	var out strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&out, "%s/%d ", g.GetUID(), g.GetGeneration())
	}
	return out.String()
}

func (r *Reader) observe(ctx context.Context, pd *v1alpha1.PDGroup, out *Observed) error {
	wanted := []string{v1alpha1.CASecretName(pd)}
	if v1alpha1.SourceOf(pd).Issuer != nil {
		wanted = nil
	}
	for _, request := range out.Requests {
		wanted = append(wanted, request.Secret)
	}
	for _, name := range wanted {
		secret := &corev1.Secret{}
		switch err := r.live.Get(ctx, types.NamespacedName{Namespace: pd.Namespace, Name: name}, secret); {
		case err == nil:
			out.Secrets[name] = secret
		case apierrors.IsForbidden(err):
			out.Hindered = hinderedReading
			return nil
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get Secret %s: %w", name, err)
		}
	}
	if issuer := v1alpha1.SourceOf(pd).Issuer; issuer != nil {
		return r.certificates(ctx, pd, *issuer, out)
	}
	return nil
}

// certificates reads the Certificates of a cluster, and its issuer.
func (r *Reader) certificates(ctx context.Context, pd *v1alpha1.PDGroup, by v1alpha1.IssuerReference, out *Observed) error {
	for _, request := range out.Requests {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(certificateKind())
		switch err := r.live.Get(ctx, types.NamespacedName{Namespace: pd.Namespace, Name: request.Secret}, u); {
		case err == nil:
			out.Certificates[request.Secret] = viewed(u)
		case meta.IsNoMatchError(err):
			out.Hindered = hinderedKind
			return nil
		case apierrors.IsForbidden(err):
			out.Hindered = hinderedCertificates
			return nil
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get Certificate %s: %w", request.Secret, err)
		}
	}
	return r.issuer(ctx, pd, by, out)
}

// issuer reads an issuer. What may not be read, or is of a kind that is not known, is known by
// its Certificates alone.
func (r *Reader) issuer(ctx context.Context, pd *v1alpha1.PDGroup, by v1alpha1.IssuerReference, out *Observed) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: by.GroupOrDefault(), Version: certificateKind().Version, Kind: by.KindOrDefault()})
	key := types.NamespacedName{Namespace: pd.Namespace, Name: by.Name}
	if by.KindOrDefault() == v1alpha1.KindClusterIssuer {
		key.Namespace = ""
	}
	switch err := r.live.Get(ctx, key, u); {
	case err == nil:
		out.Issuer.Ready = meta.FindStatusCondition(conditionsOf(u), conditionReady)
	case apierrors.IsNotFound(err):
		out.Issuer.Absent = true
	case meta.IsNoMatchError(err) && by.GroupOrDefault() == v1alpha1.CertManagerGroup:
		out.Issuer.Absent = true
	case meta.IsNoMatchError(err), apierrors.IsForbidden(err):
	default:
		return fmt.Errorf("get %s %s: %w", by.KindOrDefault(), by.Name, err)
	}
	return nil
}

// certificateKind is the kind of cert-manager's Certificates.
func certificateKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v1alpha1.CertManagerGroup, Version: "v1", Kind: v1alpha1.KindCertificate}
}

// Why no certificate can be made.
const (
	hinderedReading      = "the operator of PDGroups may not read Secrets: install it with components/tls (docs/tasks/tls.md)"
	hinderedKind         = "this Kubernetes has no Certificates of cert-manager.io: install cert-manager, or have the certificates made in another way (docs/tasks/tls.md)"
	hinderedCertificates = "the operator of PDGroups may not make Certificates: install it with components/tls-issuer (docs/tasks/tls.md)"
	hinderedSecrets      = "the operator of PDGroups may not write Secrets: install it with components/tls-self-signed (docs/tasks/tls.md)"
)
