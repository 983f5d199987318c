package podtemplate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// template has one container, of an image, and a label.
func template(image, team string) *corev1.PodTemplateSpec {
	out := &corev1.PodTemplateSpec{}
	out.Labels = map[string]string{"team": team}
	out.Spec.Containers = []corev1.Container{{Name: "tikv", Image: image}}
	return out
}

// instance asks for revision r2, which runs in place from another; empty for none.
func instance(inPlaceFrom string) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv-0", Namespace: "db", UID: "instance"}}
	i.Spec.Revision, i.Spec.InPlaceFrom = "r2", inPlaceFrom
	return i
}

// pod runs a template of a revision.
func pod(t *testing.T, revision string, of *corev1.PodTemplateSpec) *corev1.Pod {
	t.Helper()
	i := instance("")
	i.Spec.Revision = revision
	out, err := Render(i, of)
	require.NoError(t, err)
	out.UID = "pod"
	return out
}

// P4: the revision says whether a pod is what is asked for, not the rendering: another version of
// an operator renders other templates.
func TestWhenAPodNeedsARestart(t *testing.T) {
	forgetful := pod(t, "r1", template("v1", "blue"))
	forgetful.Annotations = nil
	nameless := pod(t, "", template("v1", "blue"))
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		from    string
		wanted  *corev1.PodTemplateSpec
		restart bool
		says    string
	}{
		"not for the same revision, however it is rendered": {pod(t, "r2", template("v1", "blue")), "", template("v2", "red"), false, ""},
		"not for what the running member has already":       {pod(t, "r1", template("v1", "blue")), "r1", template("v2", "red"), false, ""},
		"for what a member of another revision has":         {pod(t, "r1", template("v1", "blue")), "r0", template("v2", "blue"), true, "spec.containers[tikv].image: v1 → v2"},
		"for another image":                                 {pod(t, "r1", template("v1", "blue")), "", template("v2", "blue"), true, "spec.containers[tikv].image: v1 → v2"},
		"not for another label":                             {pod(t, "r1", template("v1", "blue")), "", template("v1", "red"), false, "metadata.labels.team: blue → red"},
		"not for a revision that differs in nothing":        {pod(t, "r1", template("v1", "blue")), "", template("v1", "blue"), false, ""},
		"if it has forgotten what it was made from":         {forgetful, "", template("v1", "blue"), true, "revision: the pod has lost the template that it was made from"},
		"if it has no revision and nothing runs in place":   {nameless, "", template("v2", "blue"), true, "spec.containers[tikv].image: v1 → v2"},
	} {
		t.Run(name, func(t *testing.T) {
			change := Difference(instance(c.from), c.pod, c.wanted)
			assert.Equal(t, c.restart, change.Restart)
			assert.Equal(t, c.says, change.Text)
		})
	}
}

// KV-25: a pod that was brought to a revision without a restart remembers which one its process
// has read its files of.
func TestKV25WhichRevisionAPodWasMadeFrom(t *testing.T) {
	made := func(from string, pod *corev1.Pod) *corev1.Pod {
		pod.Annotations[v1alpha1.AnnotationMadeFrom] = from
		return pod
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		from string
		want string
	}{
		"the one that it is called by":          {pod(t, "r2", template("v1", "blue")), "", ""},
		"the one before, changed in place":      {pod(t, "r1", template("v1", "blue")), "r1", "r1"},
		"the first of several":                  {made("r0", pod(t, "r1", template("v1", "blue"))), "r1", "r0"},
		"still, once it is called by the last":  {made("r1", pod(t, "r2", template("v1", "blue"))), "r1", "r1"},
		"itself, when an edit was set back":     {made("r2", pod(t, "r1", template("v1", "blue"))), "r1", ""},
		"another one, which it is restarted of": {pod(t, "r1", template("v1", "blue")), "", ""},
	} {
		assert.Equal(t, c.want, MadeFrom(instance(c.from), c.pod), name)
	}
}

func TestAnOrphanGetsItsOwnerAndKeepsTheOthers(t *testing.T) {
	i, wanted := instance(""), template("v1", "blue")
	next := pod(t, "r2", wanted)
	assert.Nil(t, BuildPatch(i, pod(t, "r2", wanted), next, wanted), "one that is as it should be is left alone")

	orphan := pod(t, "r2", wanted)
	orphan.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", UID: "other"}}
	patch := BuildPatch(i, orphan, next, wanted)
	metadata, ok := patch["metadata"].(map[string]any)
	require.True(t, ok)
	assert.EqualValues(t, "pod", metadata["uid"], "no other pod of the name gets it")
	owners, ok := metadata["ownerReferences"].([]metav1.OwnerReference)
	require.True(t, ok)
	require.Len(t, owners, 2)
	assert.EqualValues(t, "other", owners[0].UID)
	assert.EqualValues(t, "instance", owners[1].UID)
	assert.True(t, *owners[1].Controller)
	assert.Len(t, orphan.OwnerReferences, 1, "what the cache holds is not changed")

	foreign := pod(t, "r2", wanted)
	foreign.OwnerReferences[0].UID = "another"
	assert.Nil(t, BuildPatch(i, foreign, next, wanted), "a pod of another owner keeps it")
}
