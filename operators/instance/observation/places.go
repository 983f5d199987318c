package observation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Places remembers where the volumes of claims can be used, until the status of their Instance
// says it: while a pod starts that waits for what only people read (decision 0055), and the
// Instance is reconciled several times. The zero value is ready to use.
type Places struct {
	lock sync.Mutex
	of   map[types.NamespacedName]map[types.UID]Place
}

// Find returns where the volume of an Instance's claim can be used, if that was noted. The
// volume of a claim never becomes another.
func (p *Places) Find(instance types.NamespacedName, claim types.UID) (Place, bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	place, noted := p.of[instance][claim]
	return place, noted
}

// Note notes where the volume of an Instance's claim can be used.
func (p *Places) Note(instance types.NamespacedName, claim types.UID, place Place) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.of == nil {
		p.of = map[types.NamespacedName]map[types.UID]Place{}
	}
	if p.of[instance] == nil {
		p.of[instance] = map[types.UID]Place{}
	}
	p.of[instance][claim] = place
}

// Forget forgets all claims of an Instance.
func (p *Places) Forget(instance types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.of, instance)
}
