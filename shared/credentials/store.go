package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// fresh is for how long a Secret that was read is not read again, unless a group that it is
// read for is edited: those on the move are looked at several times a second.
const fresh = 2 * time.Second

// soon is the same of a Secret that was not there: something waits for it.
const soon = 200 * time.Millisecond

// Store is what an operator connects with. Its methods may be used concurrently.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	reads    int // that have begun
	read     map[types.NamespacedName]reading
	seen     map[types.UID]sighting
	clusters map[types.NamespacedName]cluster
	uses     map[types.NamespacedName]*use
	changes  map[string]chan event.GenericEvent
}

// reading is a Secret as it was read at a time, and which reading it was.
type reading struct {
	secret certificate.Secret
	object *corev1.Secret
	at     time.Time
	number int
}

// sighting is the version of a group that was seen last, when, and how many readings had begun
// when it was new: they count for none of it.
type sighting struct {
	generation int64
	at         time.Time
	reads      int
}

// cluster is a cluster with TLS.
type cluster struct {
	// version of the Secret that config was made from.
	version string
	// config connects to PD; nil if the Secret could never be used, and problem says why.
	config  *tls.Config
	problem error
	// used is when a group of the cluster was last reconciled.
	used time.Time
}

// New returns an empty Store.
func New(now func() time.Time) *Store {
	return &Store{
		now: now, read: map[types.NamespacedName]reading{}, seen: map[types.UID]sighting{}, clusters: map[types.NamespacedName]cluster{},
		uses: map[types.NamespacedName]*use{}, changes: map[string]chan event.GenericEvent{},
	}
}

// Observe reads the Secrets that a group uses, and has its cluster connected to with the
// client certificate among them. What was good is used on while a Secret is missing or no
// good, so that a mistake cuts no client off.
func (s *Store) Observe(ctx context.Context, live client.Reader, g v1alpha1.Group, pd *v1alpha1.PDGroup) (certificate.Secrets, error) {
	out := certificate.SecretsFor(g, pd)
	for _, secret := range []*certificate.Secret{&out.Member, &out.Client, &out.MySQL, &out.Backend} {
		if secret.Name == "" {
			continue
		}
		found, err := s.Secret(ctx, live, g, secret.Name)
		if err != nil {
			return out, err
		}
		found.Made = secret.Made
		*secret = found
	}
	if pd != nil {
		s.updateClientConfig(pd, out.Client)
	}
	return out, nil
}

// ObserveOthers adds the other groups of a cluster to what a group uses.
func (s *Store) ObserveOthers(ctx context.Context, live client.Reader, g v1alpha1.Group, cluster certificate.Cluster, into *certificate.Secrets) error {
	if g.GetTLS() == nil {
		return nil
	}
	for _, group := range cluster.Groups {
		if group.GetUID() == g.GetUID() || group.GetTLS() == nil {
			continue
		}
		other := certificate.Other{Group: group}
		if len(v1alpha1.OthersCommonNames(g)) > 0 {
			var err error
			if other.Member, err = s.Secret(ctx, live, g, v1alpha1.ClusterSecretName(group)); err != nil {
				return err
			}
			other.Member.Made = certificate.SecretsFor(group, cluster.PDGroup).Member.Made
		}
		into.Others = append(into.Others, other)
	}
	return nil
}

// lastWriteTime is when a Secret was last changed.
func lastWriteTime(secret *corev1.Secret) time.Time {
	out := secret.CreationTimestamp.Time
	for _, by := range secret.ManagedFields {
		if by.Time != nil && by.Time.After(out) {
			out = by.Time.Time
		}
	}
	return out
}

// Secret reads a Secret that the spec of a group names, unless it was just read.
func (s *Store) Secret(ctx context.Context, live client.Reader, g v1alpha1.Group, name string) (certificate.Secret, error) {
	out, _, err := s.Object(ctx, live, types.NamespacedName{Namespace: g.GetNamespace(), Name: name}, g)
	return out, err
}

// Object is Secret for several groups, and returns the object, too: nil if there is none, and
// not to be changed. What was read before one of the groups was edited does not count.
func (s *Store) Object(ctx context.Context, live client.Reader, key types.NamespacedName, groups ...v1alpha1.Group) (certificate.Secret, *corev1.Secret, error) {
	next := reading{secret: certificate.Secret{Name: key.Name}, at: s.now()}
	known, found := s.beginReading(key, &next, groups)
	if found {
		return known.secret, known.object, nil
	}
	object := &corev1.Secret{}
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		next.object = object
		next.secret.Data, next.secret.Version, next.secret.Written = object.Data, secretVersion(object), lastWriteTime(object)
		if next.secret.Data == nil {
			next.secret.Data = map[string][]byte{}
		}
		next.secret.Load()
	case apierrors.IsForbidden(err):
		next.secret.Refused = true
	case !apierrors.IsNotFound(err):
		return next.secret, nil, fmt.Errorf("get Secret %s: %w", key.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[key] = next
	s.recordUse(key, next, groups)
	return next.secret, next.object, nil
}

// beginReading returns what is known of a Secret, or gives the next reading its number.
func (s *Store) beginReading(key types.NamespacedName, next *reading, groups []v1alpha1.Group) (reading, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range s.read { // what is outdated is not kept: there are keys in it
		if next.at.Sub(r.at) >= fresh || r.object == nil && next.at.Sub(r.at) >= soon {
			delete(s.read, k)
		}
	}
	for k, was := range s.seen {
		if next.at.Sub(was.at) >= fresh {
			delete(s.seen, k)
		}
	}
	since := 0
	for _, g := range groups {
		was, found := s.seen[g.GetUID()]
		if !found || was.generation != g.GetGeneration() {
			was = sighting{generation: g.GetGeneration(), reads: s.reads}
		}
		was.at = next.at
		s.seen[g.GetUID()] = was
		since = max(since, was.reads)
	}
	if known, found := s.read[key]; found && known.number > since {
		s.recordUse(key, known, groups)
		return known, true
	}
	s.reads++
	next.number = s.reads
	return reading{}, false
}

// Forget has what is known for a group read again.
func (s *Store) Forget(g v1alpha1.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[g.GetUID()] = sighting{generation: g.GetGeneration(), at: s.now(), reads: s.reads}
}

// updateClientConfig has a cluster connected to with what is in its client Secret, or without TLS if
// its members speak none.
func (s *Store) updateClientConfig(pd *v1alpha1.PDGroup, secret certificate.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(pd)
	if v1alpha1.PDScheme(pd) == v1alpha1.SchemeHTTP {
		delete(s.clusters, key)
		return
	}
	known := s.clusters[key]
	defer func() {
		known.used = s.now()
		s.clusters[key] = known
	}()
	if known.config != nil && (secret.Version == "" || secret.Version == known.version) {
		return
	}
	pair, err := secret.Pair()
	if err != nil {
		known.problem = fmt.Errorf("read Secret %s: %w", secret.Name, err)
		return
	}
	known = cluster{version: secret.Version, config: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: pair.CA, Certificates: []tls.Certificate{pair.Certificate},
		ServerName: names.ServiceHost(pd.Name, pd.Namespace, pd.Spec.ClusterDomain),
	}}
}

// TLSForPD returns how PD is connected to, nil without TLS. It stays the same object until the
// Secret changes. The error says why it cannot be connected to.
func (s *Store) TLSForPD(pdGroup types.NamespacedName) (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, secured := s.clusters[pdGroup]
	if !secured {
		return nil, nil
	}
	if c.config == nil {
		return nil, c.problem
	}
	return c.config, nil
}

// TLSForMembers returns how the members of a group are connected to, at whatever address, nil
// without TLS.
func (s *Store) TLSForMembers(g v1alpha1.Group) *tls.Config {
	if s == nil || g.GetTLS() == nil {
		return nil
	}
	config, err := s.TLSForPD(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	if err != nil || config == nil {
		// No certificate is trusted: the group is Stalled anyway, and says why.
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	}
	config = config.Clone()
	config.ServerName = names.ServiceHost(names.PeerService(g.GetName()), g.GetNamespace(), g.GetComponentSpec().ClusterDomain)
	return config
}

// TLSForInstances returns how the member of an Instance is connected to, whose group is one of groups.
func (s *Store) TLSForInstances(groups []v1alpha1.Group) func(*v1alpha1.Instance) *tls.Config {
	return func(i *v1alpha1.Instance) *tls.Config {
		for _, g := range groups {
			if i.Spec.Group.Kind == g.GroupKind() && i.Spec.Group.Name == g.GetName() {
				return s.TLSForMembers(g)
			}
		}
		return nil
	}
}
