package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/golden"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// ownImage is the image that the operator runs from.
const ownImage = "tidb-groups/ticdcgroup-operator:v7"

// sample is the TiCDCGroup that the tests begin with, as the API server would return it.
func sample(changes ...func(*v1alpha1.TiCDCGroup)) *v1alpha1.TiCDCGroup {
	g := &v1alpha1.TiCDCGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-ticdc", Namespace: "shop", UID: "uid", Generation: 1}}
	g.Spec.ComponentSpec = stage.Component()
	g.Spec.PDGroup.Name, g.Spec.Replicas = "basic-pd", ptr.To[int32](3)
	for _, change := range changes {
		change(g)
	}
	return g
}

func TestRenderedPodIsTheRecordedOne(t *testing.T) {
	g := sample(func(g *v1alpha1.TiCDCGroup) {
		g.Spec.Config, g.Spec.SinkSecrets = "per-table-memory-quota = 20971520\n", []string{"mysql", "kafka"}
	})
	template, files, problems := buildTemplate(g, ownImage)
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/basic.json", map[string]any{"template": template, "files": files, "services": renderServices(g), "inputs": collectInputs(g)})
}

func TestCDC01AStopHandsOverWithinABound(t *testing.T) {
	for name, c := range map[string]struct {
		image string
		drain *int64
		own   *int64
		hook  []string
		grace int64
	}{
		"by default":                   {ownImage, nil, nil, []string{"/tidb-groups/drain-capture", "stop", "--api=http://localhost:8301", "--within=600s"}, 630},
		"as the spec says":             {ownImage, ptr.To[int64](7), nil, []string{"/tidb-groups/drain-capture", "stop", "--api=http://localhost:8301", "--within=7s"}, 37},
		"not at all":                   {ownImage, ptr.To[int64](0), nil, nil, 30},
		"within a grace of the user's": {ownImage, nil, ptr.To[int64](120), []string{"/tidb-groups/drain-capture", "stop", "--api=http://localhost:8301", "--within=90s"}, 120},
		"within next to none":          {ownImage, nil, ptr.To[int64](20), nil, 20},
		"by an operator that does not know its image": {"", nil, nil, nil, 630},
	} {
		t.Run(name, func(t *testing.T) {
			template, _, problems := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) {
				g.Spec.DrainSeconds, g.Spec.TerminationGracePeriodSeconds = c.drain, c.own
			}), c.image)
			require.Empty(t, problems)
			assert.Equal(t, c.grace, *template.Spec.TerminationGracePeriodSeconds)
			if c.hook == nil {
				assert.Nil(t, template.Spec.Containers[0].Lifecycle)
				return
			}
			assert.Equal(t, c.hook, template.Spec.Containers[0].Lifecycle.PreStop.Exec.Command)
		})
	}
}

func TestCDC03SecretsOfSinksAreMountedAndNeverRead(t *testing.T) {
	template, files, problems := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.SinkSecrets = []string{"mysql", "kafka"} }), "")
	require.Empty(t, problems)
	mounted := map[string]string{}
	for _, m := range template.Spec.Containers[0].VolumeMounts {
		for _, v := range template.Spec.Volumes {
			if v.Name == m.Name && v.Secret != nil {
				assert.True(t, m.ReadOnly)
				mounted[v.Secret.SecretName] = m.MountPath
			}
		}
	}
	assert.Equal(t, map[string]string{"mysql": "/var/lib/sink-secrets/mysql", "kafka": "/var/lib/sink-secrets/kafka"}, mounted)
	assert.Len(t, files, 1)
	another, _, _ := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.SinkSecrets = []string{"kafka", "mysql"} }), "")
	assert.Equal(t, template, another, "the order of the list is nothing")
}

func TestAVolumeOfTheUsersTakesThePlaceOfTheDataDirectory(t *testing.T) {
	data := func(g *v1alpha1.TiCDCGroup) []string {
		template, _, problems := buildTemplate(g, "")
		require.Empty(t, problems)
		var out []string
		for _, m := range template.Spec.Containers[0].VolumeMounts {
			if m.MountPath == "/var/lib/ticdc" {
				out = append(out, m.Name)
			}
		}
		return out
	}
	assert.Equal(t, []string{"tidb-groups-data"}, data(sample()))
	assert.Equal(t, []string{"sort"}, data(sample(func(g *v1alpha1.TiCDCGroup) {
		g.Spec.Volumes = []v1alpha1.Volume{{Name: "sort", Storage: resource.MustParse("1Gi"), Mounts: []v1alpha1.VolumeMount{{MountPath: "/var/lib/ticdc"}}}}
	})))
}

func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	template, _, problems := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.ClusterDomain = "k8s.example.com" }), "")
	require.Empty(t, problems)
	assert.Equal(t, []string{
		"--addr=0.0.0.0:8301", "--advertise-addr=$(POD_NAME).basic-ticdc-peer.shop.svc.k8s.example.com:8301",
		"--pd=http://basic-pd.shop.svc.k8s.example.com:2379", "--data-dir=/var/lib/ticdc", "--config=/etc/ticdc/ticdc.toml",
	}, template.Spec.Containers[0].Args)
}

func TestKeysThatTheOperatorOwnsAreRefused(t *testing.T) {
	_, _, problems := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.Config = "addr = \"x\"\ndata-dir = \"y\"\n" }), "")
	require.Len(t, problems, 2)
	assert.Contains(t, problems[0], "addr")
	assert.Contains(t, problems[1], "data-dir")
	_, _, problems = buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.Config = "a = " }), "")
	require.Len(t, problems, 1)
}

func TestSEC01ACaptureSpeaksTLS(t *testing.T) {
	g := sample(func(g *v1alpha1.TiCDCGroup) {
		g.Spec.TLS, g.Spec.SinkSecrets = &v1alpha1.TLS{SecretName: "mine"}, []string{"kafka"}
	})
	template, files, problems := buildTemplate(g, ownImage)
	require.Empty(t, problems)
	golden.CompareJSON(t, "testdata/tls.json", map[string]any{"template": template, "files": files, "inputs": collectInputs(g)})
}

func TestSEC01ACaptureAcceptsOnlyAllowedNames(t *testing.T) {
	template, _, problems := buildTemplate(sample(func(g *v1alpha1.TiCDCGroup) { g.Spec.TLS = &v1alpha1.TLS{AllowedCommonNames: []string{"a", "b"}} }), ownImage)
	require.Empty(t, problems)
	assert.Contains(t, template.Spec.Containers[0].Args, "--cert-allowed-cn=a,b")
}
