package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/resign"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

func TestAMembersPodHandsOverByItself(t *testing.T) {
	env := func(name string) string { return map[string]string{"POD_NAME": "basic-pd-1"}[name] }
	for name, c := range map[string]struct {
		grace  *int64
		within time.Duration
	}{
		"half of the default":          {nil, 15 * time.Second},
		"half of the user's own":       {ptr.To(int64(60)), 30 * time.Second},
		"not for a pod that is killed": {ptr.To(int64(0)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(func(g *v1alpha1.PDGroup) { g.Spec.TerminationGracePeriodSeconds = c.grace })
			template, _, problems := buildTemplate(g, "operator:v7")
			require.Empty(t, problems)
			pd := template.Spec.Containers[0]
			if c.within == 0 {
				assert.Nil(t, pd.Lifecycle)
				assert.Empty(t, template.Spec.InitContainers)
				return
			}
			require.Len(t, template.Spec.InitContainers, 1)
			init := template.Spec.InitContainers[0]
			assert.Equal(t, "operator:v7", init.Image)
			installs, err := resign.Parse(init.Command[1:], env)
			require.NoError(t, err)
			assert.Contains(t, init.VolumeMounts, corev1.VolumeMount{Name: "tidb-groups-tools", MountPath: "/tidb-groups"})
			assert.Contains(t, pd.VolumeMounts, corev1.VolumeMount{Name: "tidb-groups-tools", MountPath: "/tidb-groups", ReadOnly: true})

			assert.Nil(t, pd.Lifecycle.PostStart)
			assert.Equal(t, installs.Into, pd.Lifecycle.PreStop.Exec.Command[0])
			stop, err := resign.Parse(pd.Lifecycle.PreStop.Exec.Command[1:], env)
			require.NoError(t, err)
			assert.Equal(t, resign.Command{Line: hook.Line{Verb: "stop"}, Within: c.within, Job: resign.Job{PD: "http://localhost:2379", Name: "basic-pd-1"}}, stop)
		})
	}
}

func TestAnOperatorThatDoesNotKnowItsImageLeavesThePodAlone(t *testing.T) {
	template, _, problems := buildTemplate(stored(), "")
	require.Empty(t, problems)
	assert.Nil(t, template.Spec.Containers[0].Lifecycle)
	assert.Empty(t, template.Spec.InitContainers)
}
