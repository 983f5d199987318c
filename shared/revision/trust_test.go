package revision

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestSEC01OtherAuthoritiesRestartAPod(t *testing.T) {
	with := func(trust string) *corev1.PodTemplateSpec {
		out := &corev1.PodTemplateSpec{}
		if trust != "" {
			out.Annotations = map[string]string{v1alpha1.AnnotationTrust: trust}
		}
		return out
	}
	assert.Equal(t, Change{Text: "other certificate authorities", Restart: true}, Difference(with("a"), with("b")))
	assert.Empty(t, Difference(with("a"), with("a")).Text)
	assert.False(t, Difference(with(""), with("a")).Restart, "a user has brought the ones before, and they are the same")
	assert.False(t, Difference(with("a"), with("")).Restart)
}
