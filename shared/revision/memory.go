package revision

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/expiring"
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
type Memory struct{ stored *expiring.Cache }

// NewMemory returns a Memory that remembers nothing yet.
func NewMemory() *Memory { return &Memory{expiring.New(remembered, rememberedFor)} }

// version is one version of a ControllerRevision.
type version struct {
	uid     types.UID
	version string
}

// hashed is a rendering with its hash, and its template as JSON.
type hashed struct {
	Record
	hash     string
	template []byte
}

// decode returns the rendering that a ControllerRevision stores, of which the Record is the
// caller's.
func (m *Memory) decode(stored appsv1.ControllerRevision) (hashed, error) {
	key := version{stored.UID, stored.ResourceVersion}
	if m != nil {
		if value, known := m.stored.Get(key); known {
			if last, ok := value.(hashed); ok {
				last.Record = last.copy()
				return last, nil
			}
		}
	}
	r, err := Decode(stored)
	if err != nil {
		return hashed{}, err
	}
	out := hashed{Record: r}
	if out.hash, err = r.Hash(); err != nil {
		return hashed{}, err
	}
	if out.template, err = json.Marshal(r.Template); err != nil {
		return hashed{}, fmt.Errorf("encode the template of ControllerRevision %s: %w", stored.Name, err)
	}
	if m != nil && stored.UID != "" {
		m.stored.Add(key, hashed{r.copy(), out.hash, out.template})
	}
	return out, nil
}
