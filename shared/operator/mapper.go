package operator

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// rememberingMapper remembers what it was told of each kind. With --namespaces the cache asks
// for every list and get whether the kind has a namespace, and the mapper of client-go goes
// through all resources of all versions each time: 4 % of the operators' processor time. Of a
// kind that is there this never changes; errors are not remembered, so that a kind may come.
type rememberingMapper struct {
	meta.RESTMapper

	lock  sync.RWMutex
	known map[mappingKey]*meta.RESTMapping
}

type mappingKey struct {
	kind     schema.GroupKind
	versions string
}

// newMapper is the mapper of a manager.
func newMapper(cfg *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	inner, err := apiutil.NewDynamicRESTMapper(cfg, client)
	if err != nil {
		return nil, err
	}
	return newRememberingMapper(inner), nil
}

func newRememberingMapper(inner meta.RESTMapper) *rememberingMapper {
	return &rememberingMapper{RESTMapper: inner, known: map[mappingKey]*meta.RESTMapping{}}
}

// RESTMapping implements meta.RESTMapper.
func (m *rememberingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := mappingKey{kind, strings.Join(versions, ",")}
	m.lock.RLock()
	found, known := m.known[key]
	m.lock.RUnlock()
	if known {
		return found, nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.lock.Lock()
		m.known[key] = found
		m.lock.Unlock()
	}
	return found, err
}
