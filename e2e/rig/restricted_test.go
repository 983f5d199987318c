package rig_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// Every scenario runs below the Pod Security Standard restricted: what the operators have made
// there passes it.
func TestSEC03TheRigRefusesPodsThatAskForMoreThanTheyNeed(t *testing.T) {
	t.Parallel()
	r := rig.New(t, plane, rig.Options{})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "c"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}},
	}
	require.ErrorContains(t, r.User().Create(t.Context(), pod), "violates PodSecurity")
}
