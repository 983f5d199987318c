package revision

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/apply"
)

const (
	// remembered is how many ControllerRevisions are remembered at most: the newest of
	// some thousands of groups.
	remembered = 1 << 12
	// rememberedFor is after how long one is decoded once more in any case.
	rememberedFor = time.Hour
)

// Memory remembers what ControllerRevisions store: their data never changes, and it takes
// long to decode and to hash. Nil remembers nothing.
type Memory struct{ stored *apply.ExpiringCache }

// NewMemory returns a Memory that remembers nothing yet.
func NewMemory() *Memory { return &Memory{apply.NewExpiringCache(remembered, rememberedFor)} }

// version is one version of a ControllerRevision.
type version struct {
	uid     types.UID
	version string
}

// hashed is a rendering with its hash.
type hashed struct {
	Record
	hash string
}

// decode returns the rendering that a ControllerRevision stores, which is the caller's,
// and its hash.
func (m *Memory) decode(stored appsv1.ControllerRevision) (Record, string, error) {
	key := version{stored.UID, stored.ResourceVersion}
	if m != nil {
		if value, known := m.stored.Get(key); known {
			if last, ok := value.(hashed); ok {
				return last.copy(), last.hash, nil
			}
		}
	}
	r, err := Decode(stored)
	if err != nil {
		return Record{}, "", err
	}
	hash, err := r.Hash()
	if err != nil {
		return Record{}, "", err
	}
	if m != nil && stored.UID != "" {
		m.stored.Add(key, hashed{r.copy(), hash})
	}
	return r, hash, nil
}
