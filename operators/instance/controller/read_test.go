package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// watched counts the reads of each kind, and does something after the first status is written.
type watched struct {
	client.Client
	instances, claims, volumes int
	recorded                   func()
}

func (w *watched) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o.(type) {
	case *v1alpha1.Instance:
		w.instances++
	case *corev1.PersistentVolumeClaim:
		w.claims++
	case *corev1.PersistentVolume:
		w.volumes++
	}
	return w.Client.Get(ctx, key, o, opts...)
}

func (w *watched) Status() client.SubResourceWriter {
	return watchedStatus{SubResourceWriter: w.Client.Status(), watched: w}
}

type watchedStatus struct {
	client.SubResourceWriter
	watched *watched
}

func (w watchedStatus) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := w.SubResourceWriter.Apply(ctx, o, opts...)
	if do := w.watched.recorded; do != nil {
		w.watched.recorded = nil
		do()
	}
	return err
}

// byOneself returns an Instance that a test reconciles itself, and how.
func byOneself(t *testing.T) (stage, *watched, *reconciler, func()) {
	t.Helper()
	t.Parallel()
	s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
	s.create(func(i *v1alpha1.Instance) { i.Labels = map[string]string{byHand: ""} })
	w := &watched{Client: api}
	r, _ := manual(w)
	r.ClusterScoped = true
	return s, w, r, func() {
		t.Helper()
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name}})
		require.NoError(t, err)
	}
}

// The pod does not wait for the caches to show what was just made. That the claim is recorded
// before is decision 0001.
func TestOneReconcileMakesTheClaimRecordsItAndMakesThePod(t *testing.T) {
	s, w, _, reconciled := byOneself(t)
	w.recorded = func() {
		assert.Equal(t, s.pvc().UID, s.instance().Status.Volumes[0].ClaimUID)
		s.noPod()
	}
	reconciled()
	assert.Nil(t, w.recorded)
	assert.Equal(t, s.instance().Status.PodUID, s.pod().UID)
	assert.Equal(t, 1, w.claims)
	assert.Equal(t, 3, w.instances, "from the cache, before the claim is made, and before the pod is")
}

// P6: a pod is made of the spec as it is, and not for an Instance that is being deleted.
func TestNoPodIsMadeOfASpecThatChangedWhileItsClaimsWereRecorded(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(stage){
		"edited": func(s stage) {
			s.edit(func(i *v1alpha1.Instance) {
				i.Spec.Revision, i.Spec.PodTemplate = "r2", raw(s.T, podTemplate(image("pingcap/pd:v9")))
			})
		},
		"deleted": func(s stage) { s.delete() },
	} {
		t.Run(what, func(t *testing.T) {
			s, w, _, reconciled := byOneself(t)
			w.recorded = func() { change(s) }
			reconciled()
			assert.Nil(t, w.recorded)
			s.noPod()
		})
	}
}

// Where a volume can be used never changes: it is asked once, though status says it later.
func TestTheVolumeOfAPodThatStartsIsReadOnce(t *testing.T) {
	s, w, r, reconciled := byOneself(t)
	r.Status.Words = status.NewWords(time.Now, time.Hour)
	reconciled()
	pod := s.pod()
	volume := &corev1.PersistentVolume{}
	volume.Name = "pv-" + string(s.pvc().UID)
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example", VolumeHandle: volume.Name}
	s.forAll(volume)
	s.bind()
	s.schedule(pod)
	reconciled()
	reconciled()
	assert.Empty(t, s.instance().Status.Volumes[0].PersistentVolume, "that waits with other words")
	assert.Equal(t, 1, w.volumes)

	s.run(pod)
	reconciled()
	assert.Equal(t, volume.Name, s.instance().Status.Volumes[0].PersistentVolume)
	reconciled()
	assert.Equal(t, 1, w.volumes)
	_, noted := r.places.Find(client.ObjectKeyFromObject(s.instance()), s.pvc().UID)
	assert.False(t, noted, "what status says is not kept")
}
