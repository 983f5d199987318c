package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/group"
)

// holds are the restarts that are held back, by group.
type holds struct {
	mu      sync.Mutex
	byGroup map[types.NamespacedName]group.Hold
}

func (h *holds) get(key types.NamespacedName) group.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byGroup[key]
}

func (h *holds) put(key types.NamespacedName, hold group.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.Instance == "" {
		delete(h.byGroup, key)
		return
	}
	if h.byGroup == nil {
		h.byGroup = map[types.NamespacedName]group.Hold{}
	}
	h.byGroup[key] = hold
}
