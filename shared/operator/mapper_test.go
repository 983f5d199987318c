package operator

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// countingMapper counts the questions, and answers the first with an error.
type countingMapper struct {
	meta.RESTMapper
	asked int
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.asked++; m.asked == 1 {
		return nil, errors.New("the kind is not there yet")
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
}

func TestTheMappingOfAKindIsAskedForOnceAndAnErrorAgain(t *testing.T) {
	inner := &countingMapper{}
	m := newRememberingMapper(inner)
	kind := schema.GroupKind{Group: "groups.tidb.dev", Kind: "Instance"}

	_, err := m.RESTMapping(kind, "v1alpha1")
	require.Error(t, err)
	for range 3 {
		found, err := m.RESTMapping(kind, "v1alpha1")
		require.NoError(t, err)
		assert.Equal(t, kind.WithVersion("v1alpha1"), found.GroupVersionKind)
	}
	assert.Equal(t, 2, inner.asked)

	found, err := m.RESTMapping(kind, "v1beta1")
	require.NoError(t, err)
	assert.Equal(t, kind.WithVersion("v1beta1"), found.GroupVersionKind)
	assert.Equal(t, 3, inner.asked)
}
