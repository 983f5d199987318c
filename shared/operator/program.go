package operator

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Program is what one process runs: one operator, or several that share a cache, a
// connection to the API server, a leader lease and what PD answers.
type Program struct {
	// Name of the program; the leader lease is named after it. Every write still has the
	// name of the operator that makes it.
	Name string
	// Operators that it runs.
	Operators []Definition
}

// NewProgram is the program that runs nothing but an operator.
func NewProgram(d Definition) Program { return Program{Name: d.Name, Operators: []Definition{d}} }

// asksPD is how the operators of the program ask PD, nil if none does. PDGroup's operator asks
// for all that others ask for, and more.
func (p Program) asksPD() Dialer {
	var out Dialer
	for _, d := range p.Operators {
		if d.Dialer != nil && (out == nil || d.Kind == v1alpha1.KindPDGroup) {
			out = d.Dialer
		}
	}
	return out
}

// cachedObjects says what the cache of the program holds. That of one operator is narrowed to
// what the operator reads. A cache for several holds all that the suite made.
func (p Program) cachedObjects() map[client.Object]cache.ByObject {
	if len(p.Operators) == 1 {
		return p.Operators[0].Cached
	}
	suite := reflect.TypeFor[v1alpha1.Instance]().PkgPath()
	out, held := map[client.Object]cache.ByObject{}, map[reflect.Type]bool{}
	for _, d := range p.Operators {
		for object := range d.Cached {
			kind := reflect.TypeOf(object)
			if kind.Elem().PkgPath() != suite && !held[kind] {
				out[object], held[kind] = cache.ByObject{Label: ManagedSelector()}, true
			}
		}
	}
	return out
}
