package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	program "github.com/tidb-groups/tidb-groups/operators/tikvgroup/handover"
)

// KV-16.
func TestAStoresPodGivesItsLeadersAwayByItself(t *testing.T) {
	env := func(name string) string { return map[string]string{"POD_NAME": "basic-tikv-1"}[name] }
	for name, c := range map[string]struct {
		grace  *int64
		within time.Duration
	}{
		"half of the default":          {nil, time.Minute},
		"half of the user's own":       {ptr.To(int64(600)), 5 * time.Minute},
		"not for a pod that is killed": {ptr.To(int64(0)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			g.Spec.TerminationGracePeriodSeconds = c.grace
			template, _, problems := buildTemplate(g, "operator:v7")
			require.Empty(t, problems)
			tikv := template.Spec.Containers[0]
			if c.within == 0 {
				assert.Nil(t, tikv.Lifecycle)
				assert.Empty(t, template.Spec.InitContainers)
				return
			}
			require.Len(t, template.Spec.InitContainers, 1)
			init := template.Spec.InitContainers[0]
			assert.Equal(t, "operator:v7", init.Image)
			assert.Equal(t, tikv.Resources, init.Resources)
			assert.True(t, *init.SecurityContext.ReadOnlyRootFilesystem)
			installs, err := program.Parse(init.Command[1:], env)
			require.NoError(t, err)
			assert.Contains(t, init.VolumeMounts, corev1.VolumeMount{Name: "tidb-groups-tools", MountPath: "/tidb-groups"})
			assert.Contains(t, tikv.VolumeMounts, corev1.VolumeMount{Name: "tidb-groups-tools", MountPath: "/tidb-groups", ReadOnly: true})

			hooks := map[string]*corev1.LifecycleHandler{"stop": tikv.Lifecycle.PreStop, "start": tikv.Lifecycle.PostStart}
			for verb, hook := range hooks {
				assert.Equal(t, installs.Into, hook.Exec.Command[0])
				command, err := program.Parse(hook.Exec.Command[1:], env)
				require.NoError(t, err)
				assert.Equal(t, verb, command.Verb)
				assert.Equal(t, "http://basic-pd.shop.svc:2379", command.Job.PD)
				assert.Equal(t, "/var/lib/tikv/.tidb-groups-handover", command.Job.Record, "it lies with the data, and outlives the pod")
			}
			stop, err := program.Parse(tikv.Lifecycle.PreStop.Exec.Command[1:], env)
			require.NoError(t, err)
			assert.Equal(t, c.within, stop.Within)
			assert.Contains(t, tikv.Args, "--advertise-addr="+strings.ReplaceAll(stop.Job.Address, "basic-tikv-1.", "$(POD_NAME)."))
		})
	}
}

func TestAnOperatorThatDoesNotKnowItsImageLeavesThePodAlone(t *testing.T) {
	template, _, problems := buildTemplate(sample(), "")
	require.Empty(t, problems)
	assert.Nil(t, template.Spec.Containers[0].Lifecycle)
	assert.Empty(t, template.Spec.InitContainers)
	assert.NotContains(t, template.Spec.Volumes, corev1.Volume{Name: "tidb-groups-tools"})
}
