package pd

import "slices"

// Keep stops polling those PDs of a namespace that are not among the names:
// no group names them any more.
func (p *Poller) Keep(namespace string, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, w := range p.watches {
		if key.Namespace != namespace || slices.Contains(names, key.Name) {
			continue
		}
		delete(p.watches, key)
		w.stop()
		w.close()
	}
}
