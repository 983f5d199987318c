package rig_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

func TestAnUnjudgedWatcherKeepsTheNewestVersionsAndJudgesNone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	t.Cleanup(cancel)
	r, err := rig.Open(ctx, plane, rig.Options{Name: "unjudged", Unjudged: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	version := func(want string) func(rig.Objects) error {
		return func(o rig.Objects) error {
			if o.Get("PersistentVolumeClaim", "data").GetLabels()["version"] != want {
				return errors.New("the watcher has not seen it")
			}
			return nil
		}
	}

	create := func() *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "data", Labels: map[string]string{"version": "first"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "lost",
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		require.NoError(t, r.User().Create(ctx, claim))
		require.NoError(t, r.Await(ctx, version("first")))
		return claim
	}

	one := create()
	one.Labels["version"] = "second"
	require.NoError(t, r.User().Update(ctx, one))
	require.NoError(t, r.Await(ctx, version("second")))
	require.NoError(t, r.User().Delete(ctx, one))
	require.NoError(t, r.Await(ctx, func(o rig.Objects) error {
		if o.Get("PersistentVolumeClaim", "data") != nil {
			return errors.New("the claim is still there")
		}
		return nil
	}))
	create()

	assert.Len(t, r.Watcher.UIDs()[rig.Key{Kind: "PersistentVolumeClaim", Name: "data"}], 2, "both claims of the name")
	assert.Empty(t, r.Watcher.Violations(), "that a claim was deleted is not judged")
}
