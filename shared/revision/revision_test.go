package revision_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/shared/revision"
)

func record(inputs, image string) revision.Record {
	r := revision.Record{Inputs: inputs, Files: map[string]string{"pd.toml": "a = 1\n"}}
	r.Template.Labels = map[string]string{"a": "b"}
	r.Template.Spec.Containers = []corev1.Container{{Name: "pd", Image: image}}
	return r
}

func store(t *testing.T, number int64, r revision.Record) appsv1.ControllerRevision {
	t.Helper()
	target, err := revision.NewMemory().Resolve(r, nil)
	require.NoError(t, err)
	target.Number = number
	object, err := target.Object("basic-pd", "default", nil)
	require.NoError(t, err)
	return *object
}

func TestAnUpgradedOperatorKeepsTheStoredRendering(t *testing.T) {
	old := store(t, 3, record("same", "pd:1"))
	target, err := revision.NewMemory().Resolve(record("same", "pd:2"), []appsv1.ControllerRevision{old})
	require.NoError(t, err)
	assert.True(t, target.Stored)
	assert.Equal(t, "pd:1", target.Template.Spec.Containers[0].Image)
	assert.Equal(t, "spec.containers[pd].image: pd:1 → pd:2", target.NewRendering)
	assert.EqualValues(t, 3, target.Number)
}

// P4, KV-16: every version of the operators brings its programs from an image of its
// own.
func TestANewOperatorImageAloneMakesNoNewRendering(t *testing.T) {
	with := func(image, tools string) revision.Record {
		r := record("same", image)
		r.Template.Spec.InitContainers = []corev1.Container{{Name: revision.ToolsContainer, Image: tools}}
		return r
	}
	old := store(t, 3, with("pd:1", "operator:1"))
	now := with("pd:1", "operator:2")
	target, err := revision.NewMemory().Resolve(now, []appsv1.ControllerRevision{old})
	require.NoError(t, err)
	assert.Empty(t, target.NewRendering)
	assert.Equal(t, "operator:1", target.Template.Spec.InitContainers[0].Image, "the pods stay as they are")
	assert.Equal(t, "operator:2", now.Template.Spec.InitContainers[0].Image, "what was rendered is not touched")
	target, err = revision.NewMemory().Resolve(with("pd:2", "operator:2"), []appsv1.ControllerRevision{old})
	require.NoError(t, err)
	assert.Equal(t, "spec.containers[pd].image: pd:1 → pd:2", target.NewRendering)
	target, err = revision.NewMemory().Resolve(with("pd:1", "operator:2"), []appsv1.ControllerRevision{store(t, 3, record("same", "pd:1"))})
	require.NoError(t, err)
	assert.Contains(t, target.NewRendering, "spec.initContainers")
}

func TestAChangedSpecMakesANewRevision(t *testing.T) {
	old := store(t, 3, record("one", "pd:1"))
	target, err := revision.NewMemory().Resolve(record("two", "pd:2"), []appsv1.ControllerRevision{old})
	require.NoError(t, err)
	assert.False(t, target.Stored)
	assert.Empty(t, target.NewRendering)
	assert.EqualValues(t, 4, target.Number)
	assert.Equal(t, "pd:2", target.Template.Spec.Containers[0].Image)
}

// GRP-10.
func TestRevertingASpecFindsItsOldRevision(t *testing.T) {
	one, two := store(t, 1, record("one", "pd:1")), store(t, 2, record("two", "pd:2"))
	target, err := revision.NewMemory().Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{two, one})
	require.NoError(t, err)
	assert.True(t, target.Stored)
	assert.EqualValues(t, 1, target.Number)
}

func TestDifferenceSaysWhatNeedsARestart(t *testing.T) {
	base := func() *corev1.PodTemplateSpec {
		r := record("x", "pd:1")
		r.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
		return &r.Template
	}
	for name, c := range map[string]struct {
		change  func(*corev1.PodTemplateSpec)
		text    string
		restart bool
	}{
		"nothing changed":                 {func(*corev1.PodTemplateSpec) {}, "", false},
		"a label is changed in place":     {func(p *corev1.PodTemplateSpec) { p.Labels["a"] = "c" }, "metadata.labels.a: b → c", false},
		"an annotation is added in place": {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"x": "y"} }, "metadata.annotations.x: none → y", false},
		"an image needs a restart":        {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "pd:2" }, "spec.containers[pd].image: pd:1 → pd:2", true},
		"a container added needs a restart": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log"})
		}, "spec.containers[log] added", true},
		"an argument removed needs a restart": {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Args = []string{"--x"} }, "spec.containers[pd].args[0] added", true},
		"a restart is named before a label":   {func(p *corev1.PodTemplateSpec) { p.Labels["a"] = "c"; p.Spec.PriorityClassName = "high" }, "spec.priorityClassName: none → high", true},
		"a value that reads none is one":      {func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"gpu": "none"} }, `spec.nodeSelector.gpu: null → "none"`, true},
		"an empty value is one":               {func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"gpu": ""} }, "spec.nodeSelector.gpu: none → ", true},
		"a selector of everything is not one of nothing": {func(p *corev1.PodTemplateSpec) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}}
		}, "spec.topologySpreadConstraints[0].labelSelector: none → {}", true},
		"an empty list is the same as none": {func(p *corev1.PodTemplateSpec) { p.Spec.Tolerations = []corev1.Toleration{} }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := base()
			c.change(wanted)
			got := revision.Difference(base(), wanted)
			assert.Equal(t, c.text, got.Text)
			assert.Equal(t, c.restart, got.Restart)
			back := revision.Difference(wanted, base())
			assert.Equal(t, c.restart, back.Restart, "and taken back: %s", back.Text)
		})
	}
}

// What a ControllerRevision stores is decoded once, and is the caller's to change.
func TestACallerCannotChangeACachedRevision(t *testing.T) {
	stored := store(t, 2, record("one", "pd:1"))
	stored.UID, stored.ResourceVersion = "u", "1"
	m := revision.NewMemory()
	first, err := m.Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{stored})
	require.NoError(t, err)
	first.Template.Spec.Containers[0].Image = "changed"
	for file := range first.Files {
		first.Files[file] = "changed"
	}

	unreadable := stored
	unreadable.Data.Raw = []byte("no JSON")
	again, err := m.Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{unreadable})
	require.NoError(t, err, "it is not decoded again")
	fresh, err := revision.NewMemory().Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{stored})
	require.NoError(t, err)
	assert.Equal(t, fresh, again)

	unreadable.ResourceVersion = "2"
	_, err = m.Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{unreadable})
	require.Error(t, err, "another version is")
	unreadable.UID = ""
	_, err = m.Resolve(record("one", "pd:1"), []appsv1.ControllerRevision{unreadable})
	require.Error(t, err, "what has no identity is not remembered")
}
