package revision

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// U 15: a change of the configuration is told by its items, not by the name of a
// ConfigMap.
func TestARolloutReportsWhatItChanges(t *testing.T) {
	record := func(image string, files map[string]string) Record {
		r := Record{Files: files}
		r.Template.Spec.Containers = []corev1.Container{{Name: "tikv", Image: image}}
		r.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "config-" + files["tikv.toml"]},
		}}}}
		return r
	}
	file := func(text string) map[string]string { return map[string]string{"tikv.toml": text} }
	for name, c := range map[string]struct {
		old, wanted Record
		says        string
	}{
		"an item that was not set":  {record("a", file("")), record("a", file("[log]\nlevel = \"warn\"\n")), `config: log.level: (unset) → "warn"`},
		"one that changes":          {record("a", file("a = 1\n[log]\nlevel = \"info\"\n")), record("a", file("a = 1\n[log]\nlevel = \"warn\"\n")), `config: log.level: "info" → "warn"`},
		"one that goes":             {record("a", file("a = 1\n")), record("a", file("")), "config: a: 1 → (unset)"},
		"many":                      {record("a", file("")), record("a", file("a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n")), "config: a: (unset) → 1, b: (unset) → 2, c: (unset) → 3, and 2 more"},
		"a long one":                {record("a", file("")), record("a", file(`a = "`+strings.Repeat("x", 99)+`"`)), `config: a: (unset) → "` + strings.Repeat("x", 59) + "…"},
		"what is no TOML":           {record("a", file("")), record("a", file("#!/bin/sh\nset -e")), "config: tikv.toml"},
		"another image":             {record("a", file("")), record("b", file("")), "spec.containers[tikv].image: a → b"},
		"another configuration too": {record("a", file("")), record("b", file("a = 1")), "config: a: (unset) → 1"},
	} {
		t.Run(name, func(t *testing.T) {
			hash, err := c.old.Hash()
			require.NoError(t, err)
			object, err := Target{Record: c.old, Hash: hash}.Object("basic-tikv", "ns", nil)
			require.NoError(t, err)
			stored := []appsv1.ControllerRevision{*object}
			assert.Equal(t, c.says, Target{Record: c.wanted}.ChangesSince(hash, stored))
			assert.Empty(t, Target{Record: c.wanted}.ChangesSince("other", stored))
		})
	}
}
