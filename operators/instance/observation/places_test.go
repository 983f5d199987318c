package observation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheNodesOfAVolumeAreCachedForItsClaim(t *testing.T) {
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	local := Place{Bound: true, Nodes: []string{"n1"}}
	p := &Places{}
	p.Note(a, "1", local)
	p.Note(b, "2", Place{})
	found, noted := p.Find(a, "1")
	assert.True(t, noted)
	assert.Equal(t, local, found)
	_, noted = p.Find(a, "2")
	assert.False(t, noted, "another claim has another volume")
	p.Forget(a)
	_, noted = p.Find(a, "1")
	assert.False(t, noted)
	_, noted = p.Find(b, "2")
	assert.True(t, noted)
	p.Forget(b)
	assert.Empty(t, p.of)
}
