package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// faulty fails one write: before it reaches the API server, or after it has
// been done, as when the reply is lost or the operator dies at that moment.
type faulty struct {
	client.Client
	// failAt is the number of the write that fails, counting from 1.
	failAt int
	// lost says that the write is done and only its reply is lost.
	lost bool

	writes, podsMade, podsStopped int
}

func (f *faulty) write(do func() error) error {
	f.writes++
	if f.writes == f.failAt && !f.lost {
		return errors.New("the request was lost")
	}
	if err := do(); err != nil {
		return err
	}
	if f.writes == f.failAt {
		return errors.New("the reply was lost")
	}
	return nil
}

func (f *faulty) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	applied := (&client.CreateOptions{}).ApplyOptions(opts)
	if len(applied.DryRun) > 0 {
		return f.Client.Create(ctx, o, opts...)
	}
	return f.write(func() error {
		err := f.Client.Create(ctx, o, opts...)
		if _, ok := o.(*corev1.Pod); ok && err == nil {
			f.podsMade++
		}
		return err
	})
}

func (f *faulty) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return f.write(func() error {
		err := f.Client.Delete(ctx, o, opts...)
		if _, ok := o.(*corev1.Pod); ok && err == nil {
			f.podsStopped++
		}
		return err
	})
}

func (f *faulty) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return f.write(func() error { return f.Client.Patch(ctx, o, p, opts...) })
}

func (f *faulty) Status() client.SubResourceWriter {
	return faultyStatus{SubResourceWriter: f.Client.Status(), faulty: f}
}

type faultyStatus struct {
	client.SubResourceWriter
	faulty *faulty
}

func (f faultyStatus) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return f.faulty.write(func() error { return f.SubResourceWriter.Apply(ctx, o, opts...) })
}

// settle reconciles until nothing is written any more.
func (s stage) settle(r *reconciler, f *faulty) {
	s.Helper()
	for range 50 {
		before := f.writes
		_, err := r.Reconcile(s.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name}})
		if err == nil && f.writes == before {
			return
		}
	}
	s.Fatal("it does not settle")
}

// life takes an Instance from creation over a restart to its end, and returns
// the UID of its claim.
func (s stage) life(r *reconciler, f *faulty) {
	s.Helper()
	s.create(func(i *v1alpha1.Instance) { i.Labels = map[string]string{byHand: ""} })
	s.settle(r, f)
	first := s.pod()
	uid := s.bind().UID
	s.run(first)
	s.settle(r, f)
	assert.Equal(s, uid, s.instance().Status.Volumes[0].ClaimUID)
	assert.True(s, meta.IsStatusConditionTrue(s.instance().Status.Conditions, v1alpha1.ConditionReady))

	s.edit(func(i *v1alpha1.Instance) {
		i.Spec.Revision, i.Spec.PodTemplate = "r2", raw(s.T, podTemplate(image("pingcap/pd:v9")))
	})
	s.settle(r, f)
	s.stop(first)
	s.settle(r, f)
	second := s.pod(string(first.UID))
	s.run(second)
	s.settle(r, f)
	assert.True(s, meta.IsStatusConditionTrue(s.instance().Status.Conditions, v1alpha1.ConditionReady))

	s.edit(func(i *v1alpha1.Instance) { i.Spec.Retire = true })
	s.delete()
	s.settle(r, f)
	s.stop(second)
	s.settle(r, f)
	assert.True(s, apierrors.IsNotFound(s.get(name, &v1alpha1.Instance{})))
	assert.Equal(s, uid, s.pvc().UID)
	assert.NotEmpty(s, s.pvc().Annotations[v1alpha1.AnnotationRetired])
}

// P6: a write that fails, or whose reply is lost, changes neither the outcome
// nor the number of pods made and stopped, whichever write it is.
func TestEveryWriteMayFailOrLoseItsReply(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, failAt int, lost bool) *faulty {
		t.Helper()
		s := stage{T: t, namespace: controlplane.CreateNamespace(t, api)}
		f := &faulty{Client: api, failAt: failAt, lost: lost}
		r, _ := manual(f)
		s.life(r, f)
		assert.Equal(t, 2, f.podsMade, "pods made")
		assert.Equal(t, 2, f.podsStopped, "pods stopped")
		return f
	}
	undisturbed := play(t, 0, false)
	require.Positive(t, undisturbed.writes)
	t.Logf("a life with one restart takes %d writes", undisturbed.writes)
	for failAt := 1; failAt <= undisturbed.writes; failAt++ {
		t.Run(fmt.Sprintf("the reply to write %d is lost", failAt), func(t *testing.T) {
			t.Parallel()
			play(t, failAt, true)
		})
	}
	// To fail before any later write is much the same as losing the reply to
	// the one before it.
	t.Run("the first write fails", func(t *testing.T) {
		t.Parallel()
		play(t, 1, false)
	})
}
