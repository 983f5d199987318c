package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/operators/instance/podtemplate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
)

func TestDecodeTemplateNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ raw, wrong string }{
		"nothing":             {``, "empty"},
		"not JSON":            {`{`, "EOF"},
		"an unknown field":    {`{"spec":{"contaners":[]}}`, `"contaners"`},
		"a field of a type":   {`{"spec":{"containers":"x"}}`, "containers"},
		"no container at all": {`{"spec":{}}`, "spec.containers is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeTemplate(runtime.RawExtension{Raw: []byte(c.raw)})
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

func TestPodIsTheTemplateAndWhatMakesItThisMember(t *testing.T) {
	i := newInstance(t, "ns")
	i.UID = "uid"
	template := podTemplate()
	template.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "config"}}
	pod, err := podtemplate.Render(i, template)
	require.NoError(t, err)
	assert.Equal(t, "basic-pd-0", pod.Name)
	assert.Equal(t, "basic-pd-0", pod.Spec.Hostname)
	assert.Equal(t, map[string]string{
		"app.kubernetes.io/component": "pd", "team": "blue",
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelInstance: "basic-pd-0", v1alpha1.LabelRevision: "r1",
	}, pod.Labels)
	assert.Equal(t, podstate.OwnPod, podstate.OwnerOf(i, pod))
	require.Len(t, pod.Spec.Volumes, 2)
	assert.Equal(t, "config", pod.Spec.Volumes[0].Name)
	assert.Equal(t, "data-basic-pd-0", pod.Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
	assert.Equal(t, template, podtemplate.RecordedTemplate(pod))
}

func TestPodWithoutSubdomainKeepsItsHostname(t *testing.T) {
	template := podTemplate()
	template.Spec.Subdomain = ""
	pod, err := podtemplate.Render(newInstance(t, "ns"), template)
	require.NoError(t, err)
	assert.Empty(t, pod.Spec.Hostname)
}

func TestClaimOutlivesItsInstance(t *testing.T) {
	i := newInstance(t, "ns")
	claim := volumeclaim.Render(i, podTemplate(), i.Spec.VolumeClaimTemplates[0])
	assert.Equal(t, "data-basic-pd-0", claim.Name)
	assert.Empty(t, claim.OwnerReferences)
	assert.Equal(t, map[string]string{
		"app.kubernetes.io/component": "pd", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelInstance: "basic-pd-0",
		v1alpha1.LabelGroup: "basic-pd", v1alpha1.LabelVolume: "data",
	}, claim.Labels)
}
