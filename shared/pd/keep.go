package pd

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// IsAskedFor reports whether the asker has a PD polled.
func (p *Poller) IsAskedFor(pd types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.watches[pd]
	if w == nil {
		return false
	}
	_, asks := w.askers[p.asker]
	return asks
}

// Keep says that the asker no longer asks for those PDs of a namespace that are not among
// the names: no group names them any more. What is not asked for is not polled, and what is
// known of it is dropped.
func (p *Poller) Keep(namespace string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.watches {
		if key.Namespace != namespace || slices.Contains(names, key.Name) {
			continue
		}
		if delete(w.askers, p.asker); len(w.askers) > 0 {
			continue
		}
		delete(p.watches, key)
		w.stop()
		w.close()
	}
}
