package issuance

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	"github.com/tidb-groups/tidb-groups/shared/credentials"
)

// fresh is for how long what was read of cert-manager for a cluster, and how its Secrets were
// judged, is not looked at again, unless one of its groups is edited, or something is written.
const fresh = 2 * time.Second

// Reader reads what there is of the certificates of clusters. It may be used concurrently.
// Secrets are those of the operator's store, which reads each for all that look at it.
type Reader struct {
	live    client.Reader
	secrets *credentials.Store
	now     func() time.Time

	mu   sync.Mutex
	read map[types.UID]reading
}

// reading is what was read at a time, for groups of some generations.
type reading struct {
	of  string
	at  time.Time
	got Observed
}

// NewReader returns a Reader of the API server.
func NewReader(live client.Reader, secrets *credentials.Store, now func() time.Time) *Reader {
	return &Reader{live: live, secrets: secrets, now: now, read: map[types.UID]reading{}}
}

// Read reads what there is of the certificates of a cluster. Nothing is read of one whose
// certificates a user brings.
func (r *Reader) Read(ctx context.Context, pd *v1alpha1.PDGroup, groups []v1alpha1.Group) (Observed, error) {
	out := Observed{Requests: certificate.Requests(pd, groups), Groups: groups, Secrets: map[string]*corev1.Secret{}, Certificates: map[string]*Certificate{}}
	if len(out.Requests) == 0 {
		return out, nil
	}
	by := v1alpha1.SourceOf(pd).Issuer
	if err := r.readSecrets(ctx, pd, by == nil, &out); err != nil || out.Hindered != "" {
		return out, err
	}
	next := reading{of: joinGenerations(groups), at: r.now()}
	was := r.findRecent(pd, next)
	switch {
	case by == nil:
	case was != nil:
		out.Certificates, out.Issuer, out.Hindered, next.at = was.got.Certificates, was.got.Issuer, was.got.Hindered, was.at
	default:
		if err := r.readCertificates(ctx, pd, *by, &out); err != nil {
			return out, err
		}
	}
	// The store returns the same object until it has read the Secret again.
	if was != nil && maps.Equal(out.Secrets, was.got.Secrets) {
		out.judged, next.at = was.got.judged, was.at
	} else {
		out = out.Judge(pd, next.at)
	}
	next.got = out
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[pd.UID] = next
	return out, nil
}

// findRecent returns what was read of a cluster for groups of the same generations; nil if that is
// outdated.
func (r *Reader) findRecent(pd *v1alpha1.PDGroup, next reading) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, was := range r.read { // what is outdated is not kept: there are keys in it
		if next.at.Sub(was.at) >= fresh {
			delete(r.read, k)
		}
	}
	if was, found := r.read[pd.UID]; found && was.of == next.of {
		return &was
	}
	return nil
}

// Forget has what is known of a cluster read again.
func (r *Reader) Forget(pd *v1alpha1.PDGroup) {
	r.secrets.Forget(pd)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, pd.UID)
}

// joinGenerations names the versions of groups' specs.
func joinGenerations(groups []v1alpha1.Group) string {
	var out strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&out, "%s/%d ", g.GetUID(), g.GetGeneration())
	}
	return out.String()
}

// readSecrets reads the Secrets of a cluster, and that of its CA if it has one of its own.
func (r *Reader) readSecrets(ctx context.Context, pd *v1alpha1.PDGroup, own bool, out *Observed) error {
	var wanted []string
	if own {
		wanted = append(wanted, v1alpha1.CASecretName(pd))
	}
	for _, request := range out.Requests {
		wanted = append(wanted, request.Secret)
	}
	for _, name := range wanted {
		known, secret, err := r.secrets.Object(ctx, r.live, types.NamespacedName{Namespace: pd.Namespace, Name: name}, append(slices.Clone(out.Groups), pd)...)
		switch {
		case err != nil:
			return err
		case known.Refused:
			out.Hindered = hinderedReading
			return nil
		case secret != nil:
			out.Secrets[name] = secret
		}
	}
	return nil
}

// readCertificates reads the Certificates of a cluster, and its issuer.
func (r *Reader) readCertificates(ctx context.Context, pd *v1alpha1.PDGroup, by v1alpha1.IssuerReference, out *Observed) error {
	for _, request := range out.Requests {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(certificateKind())
		switch err := r.live.Get(ctx, types.NamespacedName{Namespace: pd.Namespace, Name: request.Secret}, u); {
		case err == nil:
			out.Certificates[request.Secret] = readCertificate(u)
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
	return r.readIssuer(ctx, pd, by, out)
}

// readIssuer reads an issuer. What may not be read, or is of a kind that is not known, is known by
// its Certificates alone.
func (r *Reader) readIssuer(ctx context.Context, pd *v1alpha1.PDGroup, by v1alpha1.IssuerReference, out *Observed) error {
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
