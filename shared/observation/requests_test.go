package observation

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// KV-16.
func TestAnAnnotationOrACordonedNodeRestartsAnUnchangedPod(t *testing.T) {
	far, near, unknown := v1alpha1.VolumeStatus{PersistentVolume: "pv"}, v1alpha1.VolumeStatus{PersistentVolume: "pv", NodeBound: true}, v1alpha1.VolumeStatus{}
	for name, c := range map[string]struct {
		annotations map[string]string
		cordoned    bool
		volumes     []v1alpha1.VolumeStatus
		says        string
	}{
		"nothing":                            {says: ""},
		"a user asks":                        {annotations: map[string]string{v1alpha1.AnnotationRestart: "now"}, says: "annotation groups.tidb.dev/restart=now"},
		"a user has been answered":           {annotations: map[string]string{v1alpha1.AnnotationRestart: "now", v1alpha1.AnnotationRestarted: "now"}, says: ""},
		"a user asks again":                  {annotations: map[string]string{v1alpha1.AnnotationRestart: "later", v1alpha1.AnnotationRestarted: "now"}, says: "annotation groups.tidb.dev/restart=later"},
		"its node is cordoned":               {cordoned: true, says: "node n is cordoned"},
		"and its volume follows":             {cordoned: true, volumes: []v1alpha1.VolumeStatus{far}, says: "node n is cordoned"},
		"and its volume stays":               {cordoned: true, volumes: []v1alpha1.VolumeStatus{far, near}, says: ""},
		"and its volume's nodes are unknown": {cordoned: true, volumes: []v1alpha1.VolumeStatus{unknown}, says: ""},
		"its volume stays, and a user asks":  {annotations: map[string]string{v1alpha1.AnnotationRestart: "now"}, cordoned: true, volumes: []v1alpha1.VolumeStatus{near}, says: "annotation groups.tidb.dev/restart=now"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1alpha1.Instance{}
			i.Annotations = c.annotations
			i.Status.NodeName, i.Status.Volumes = "n", c.volumes
			assert.Equal(t, c.says, RestartRequest(Snapshot{Cordoned: map[string]bool{"n": c.cordoned}}, i).Text())
		})
	}
}
