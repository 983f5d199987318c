package credentials

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

const (
	// lookTimeout bounds one look at a Secret.
	lookTimeout = 10 * time.Second
	// kept is for how long a group that has not asked for a Secret again is woken by it. At
	// rest groups ask once in certificate.ReviewAgain.
	kept = 2 * certificate.ReviewAgain
	// waiting is how many groups may wait to be woken.
	waiting = 256
)

// use is a Secret that groups have asked for: how it was, and by whom and when.
type use struct {
	state string
	by    map[user]time.Time
}

// user is a group that has asked for a Secret, and is woken through the channel of its kind.
type user struct {
	through chan event.GenericEvent
	name    types.NamespacedName
}

// Changes brings the groups of a kind whose Secrets have changed since they were read. It has
// to be asked for before Run runs.
func (s *Store) Changes(kind string) <-chan event.GenericEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[kind] == nil {
		s.changes[kind] = make(chan event.GenericEvent, waiting)
	}
	return s.changes[kind]
}

// Run looks at the Secrets that groups use, every three minutes until the context ends: no watch reports
// of them, for it would need the right to list.
func (s *Store) Run(ctx context.Context, live client.Reader) error {
	tick := time.NewTicker(certificate.LookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.CheckSecrets(ctx, live)
		}
	}
}

// CheckSecrets looks whether the Secrets that groups use have changed, each once for all of them, and
// wakes those whose have. It reads metadata only. What it cannot look at it looks at again.
func (s *Store) CheckSecrets(ctx context.Context, live client.Reader) {
	for _, key := range s.inUse() {
		state, err := fetchState(ctx, live, key)
		if err != nil {
			continue
		}
		for _, one := range s.invalidateIfChanged(key, state) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: one.name.Namespace, Name: one.name.Name}}
			select {
			case one.through <- event.GenericEvent{Object: object}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// States of a Secret beside its version.
const (
	absent  = "absent"
	refused = "refused"
)

// fetchState returns the state of a Secret.
func fetchState(ctx context.Context, live client.Reader, key types.NamespacedName) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	switch err := live.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		return absent, nil
	case apierrors.IsForbidden(err):
		return refused, nil
	case err != nil:
		return "", fmt.Errorf("get metadata of Secret %s: %w", key.Name, err)
	}
	return secretVersion(object), nil
}

// secretVersion names the content of a Secret.
func secretVersion(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// state is that of a Secret that was read.
func (r reading) state() string {
	switch {
	case r.secret.Refused:
		return refused
	case r.object == nil:
		return absent
	}
	return r.secret.Version
}

// recordUse notes which groups have asked for a Secret, and how it was; s.mu is held.
func (s *Store) recordUse(key types.NamespacedName, r reading, groups []v1alpha1.Group) {
	known := s.uses[key]
	if known == nil {
		known = &use{by: map[user]time.Time{}}
		s.uses[key] = known
	}
	known.state = r.state()
	for _, g := range groups {
		if through := s.changes[g.GroupKind()]; through != nil { // others have an operator of their own
			known.by[user{through, client.ObjectKeyFromObject(g)}] = s.now()
		}
	}
}

// inUse are the Secrets that groups have asked for lately.
func (s *Store) inUse() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []types.NamespacedName
	now := s.now()
	for key, known := range s.uses {
		for by, at := range known.by {
			if now.Sub(at) >= kept {
				delete(known.by, by)
			}
		}
		if len(known.by) == 0 {
			delete(s.uses, key)
			continue
		}
		out = append(out, key)
	}
	maps.DeleteFunc(s.clusters, func(_ types.NamespacedName, c cluster) bool { return now.Sub(c.used) >= kept }) // there are keys in it
	return out
}

// invalidateIfChanged returns the groups that use a Secret if it is not what it was, and has them read it
// again.
func (s *Store) invalidateIfChanged(key types.NamespacedName, state string) []user {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.uses[key]
	if known == nil || known.state == state {
		return nil
	}
	known.state = state
	delete(s.read, key)
	var out []user
	for by := range known.by {
		out = append(out, by)
	}
	return out
}
