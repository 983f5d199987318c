package credentials

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// The keys of a cluster that is gone are not kept.
func TestWhatAClusterWasConnectedToWithGoesWithIt(t *testing.T) {
	now := time.Now()
	s := New(func() time.Time { return now })
	named := func(name string) *v1alpha1.PDGroup {
		pd := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		pd.Spec.TLS = &v1alpha1.PDTLS{}
		return pd
	}
	for _, name := range []string{"a", "b", "c"} {
		s.updateClientConfig(named(name), certificate.Secret{Name: name})
	}
	now = now.Add(kept / 2)
	s.updateClientConfig(named("b"), certificate.Secret{Name: "b"})
	now = now.Add(kept / 2)
	s.inUse() // what Run does every three minutes
	assert.Len(t, s.clusters, 1, "a group of b was reconciled meanwhile")
	now = now.Add(kept)
	s.inUse()
	assert.Empty(t, s.clusters)
}
