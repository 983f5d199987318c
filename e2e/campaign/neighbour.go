package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// The groups of the hostile cluster are called as those of the target, where these have
// one-letter names. Beside it, in its own namespace, are a cluster with an honest PD,
// and objects of other owners.
const (
	bystander  = "x"
	strangers  = "theirs"
	newborn    = "e"
	aVersion   = "v8.5.7"
	someConfig = "[schedule]\nmax-snapshot-count = 63\n"
)

// groupOf is a group of the hostile namespace, with one volume if its members have any.
func groupOf(namespace, kind, name, pd string, replicas int32) client.Object {
	at := metav1.ObjectMeta{Namespace: namespace, Name: name}
	spec := v1alpha1.ComponentSpec{Version: aVersion, Volumes: []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}}
	switch kind {
	case v1alpha1.KindPDGroup:
		out := &v1alpha1.PDGroup{ObjectMeta: at}
		out.Spec.ComponentSpec, out.Spec.Replicas = spec, ptr.To(replicas)
		return out
	case v1alpha1.KindTiKVGroup:
		out := &v1alpha1.TiKVGroup{ObjectMeta: at}
		out.Spec.ComponentSpec, out.Spec.Replicas, out.Spec.PDGroup.Name = spec, ptr.To(replicas), pd
		return out
	case v1alpha1.KindTiFlashGroup:
		out := &v1alpha1.TiFlashGroup{ObjectMeta: at}
		out.Spec.ComponentSpec, out.Spec.Replicas, out.Spec.PDGroup.Name = spec, ptr.To(replicas), pd
		return out
	default:
		out := &v1alpha1.TiDBGroup{ObjectMeta: at}
		spec.Volumes = nil
		out.Spec.ComponentSpec, out.Spec.Replicas, out.Spec.PDGroup.Name = spec, ptr.To(replicas), pd
		return out
	}
}

// moveIn makes the hostile cluster, and what is beside it in its namespace.
func (b *beside) moveIn(ctx context.Context) error {
	namespace := b.hostile.Namespace()
	at := metav1.ObjectMeta{Namespace: namespace, Name: strangers}
	pod := &corev1.Pod{ObjectMeta: at, Spec: workload.JobPod()}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.com/c:1", SecurityContext: workload.UnprivilegedContext(false)}}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/theirs"}} // never scheduled, so that it never runs
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: at, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	all := []client.Object{
		pod, claim, &corev1.ConfigMap{ObjectMeta: at, Data: map[string]string{"a": "1"}},
		groupOf(namespace, v1alpha1.KindPDGroup, bystander, "", 1), groupOf(namespace, v1alpha1.KindTiKVGroup, "y", bystander, 1),
		groupOf(namespace, v1alpha1.KindPDGroup, "a", "", 3), groupOf(namespace, v1alpha1.KindTiKVGroup, "b", "a", 4), groupOf(namespace, v1alpha1.KindTiDBGroup, "c", "a", 2),
	}
	for _, object := range all {
		if err := b.hostile.User().Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return b.converged(ctx)
}

// converged waits until everything in the hostile namespace is as asked for.
func (b *beside) converged(ctx context.Context) error {
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("the hostile cluster is not well within %s", bound))
	defer cancel()
	return b.hostile.Watcher.Await(ctx, func(o objects.Set) error {
		for _, kind := range v1alpha1.GroupKinds(func(v1alpha1.ComponentInfo) bool { return true }) {
			for _, name := range o.Names(kind, "") {
				group := o.Get(kind, name)
				if group.GetDeletionTimestamp() != nil {
					return fmt.Errorf("%s %s is being deleted", kind, name)
				}
				if have, want := len(o.Names("Pod", name+"-")), int(replicasOf(group)); have != want {
					return fmt.Errorf("%s %s has %d pods of %d", kind, name, have, want)
				}
			}
		}
		return o.AllConverged()
	})
}

// errand is something that the owner of the hostile namespace does with his cluster, and
// takes back, so that PD is asked for more than what is always asked.
type errand struct {
	name     string
	do, undo func(ctx context.Context, b *beside) error
}

// listErrands are all of them. That of nothing comes first.
func listErrands() []errand {
	set := func(kind, name, patch string) func(context.Context, *beside) error {
		return func(ctx context.Context, b *beside) error {
			object := groupOf(b.hostile.Namespace(), kind, name, "", 0)
			if err := b.hostile.User().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				return fmt.Errorf("change %s %s: %w", kind, name, err)
			}
			return nil
		}
	}
	replicas := func(name, kind, group string, few, many int) errand {
		to := func(n int) func(context.Context, *beside) error {
			return set(kind, group, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
		}
		return errand{name, to(few), to(many)}
	}
	restart := func(name, kind, group string) errand {
		return errand{name, set(kind, group, `{"spec":{"restartedAt":"now"}}`), set(kind, group, `{"spec":{"restartedAt":null}}`)}
	}
	return []errand{
		{"labels", set(v1alpha1.KindPDGroup, "a", `{"spec":{"labels":{"a":"b"}}}`), set(v1alpha1.KindPDGroup, "a", `{"spec":{"labels":null}}`)},
		replicas("server-leaves", v1alpha1.KindTiDBGroup, "c", 1, 2),
		replicas("store-leaves", v1alpha1.KindTiKVGroup, "b", 3, 4),
		restart("stores-restart", v1alpha1.KindTiKVGroup, "b"),
		{"config-is-stored", set(v1alpha1.KindPDGroup, "a", fmt.Sprintf(`{"spec":{"config":%q}}`, someConfig)), set(v1alpha1.KindPDGroup, "a", `{"spec":{"config":null}}`)},
		restart("members-restart", v1alpha1.KindPDGroup, "a"),
		replicas("member-leaves", v1alpha1.KindPDGroup, "a", 2, 3),
		{"cluster-is-born", createCluster, deleteCluster},
	}
}

// touch edits one of the hostile cluster's groups, so that its operators are at work.
func (b *beside) touch(ctx context.Context, n int) error {
	group := groupOf(b.hostile.Namespace(), v1alpha1.KindPDGroup, "a", "", 0)
	patch := fmt.Appendf(nil, `{"spec":{"annotations":{"example.com/touched":"%d"}}}`, n)
	if err := b.hostile.User().Patch(ctx, group, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("touch the hostile PDGroup: %w", err)
	}
	return nil
}

// createCluster makes another hostile cluster.
func createCluster(ctx context.Context, b *beside) error {
	namespace := b.hostile.Namespace()
	for _, group := range []client.Object{
		groupOf(namespace, v1alpha1.KindPDGroup, newborn, "", 1), groupOf(namespace, v1alpha1.KindTiKVGroup, "f", newborn, 1),
		groupOf(namespace, v1alpha1.KindTiFlashGroup, "g", newborn, 1), groupOf(namespace, v1alpha1.KindTiDBGroup, "h", newborn, 1),
	} {
		if err := b.hostile.User().Create(ctx, group); err != nil {
			return fmt.Errorf("create %T %s: %w", group, group.GetName(), err)
		}
	}
	return nil
}

// deleteCluster deletes it, with its claims.
func deleteCluster(ctx context.Context, b *beside) error {
	namespace := b.hostile.Namespace()
	for kind, name := range map[string]string{
		v1alpha1.KindPDGroup: newborn, v1alpha1.KindTiKVGroup: "f", v1alpha1.KindTiFlashGroup: "g", v1alpha1.KindTiDBGroup: "h",
	} {
		if err := b.hostile.User().Delete(ctx, groupOf(namespace, kind, name, "", 0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", kind, name, err)
		}
	}
	ctx, cancel := withRunningTimeout(ctx, bound, fmt.Errorf("the cluster %s has not gone within %s", newborn, bound))
	defer cancel()
	var claims []string
	err := b.hostile.Watcher.Await(ctx, func(o objects.Set) error {
		claims = nil
		for _, name := range []string{newborn, "f", "g", "h"} {
			for _, kind := range append(v1alpha1.ClusterKinds(), "Pod") {
				if left := slices.DeleteFunc(o.Names(kind, name), func(s string) bool { return s != name && !strings.HasPrefix(s, name+"-") }); len(left) > 0 {
					return fmt.Errorf("there is %s %v", kind, left)
				}
			}
			claims = append(claims, o.Names("PersistentVolumeClaim", "data-"+name+"-")...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.hostile.Consent(claims...)
	for _, name := range claims {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := b.hostile.User().Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete claim %s: %w", name, err)
		}
	}
	return b.hostile.Watcher.Await(ctx, func(o objects.Set) error {
		for _, name := range claims {
			if o.Get("PersistentVolumeClaim", name) != nil {
				return errors.New("claim " + name + " is still there")
			}
		}
		return nil
	})
}

// Asked is an endpoint of PD that the operators ask, and when.
type Asked struct {
	// Endpoint as endpointOf names it.
	Endpoint string `json:"endpoint"`
	// Errand during which it was asked first, and whether not before it was taken back.
	Errand string `json:"errand"`
	Back   bool   `json:"back,omitempty"`
	// JSON says that PD's answer to it can be changed.
	JSON bool `json:"json,omitempty"`
}

// listen goes every errand beside an honest PD, and returns what PD is asked.
func (b *beside) listen(ctx context.Context) ([]Asked, error) {
	var out []Asked
	for _, e := range listErrands() {
		for _, back := range []bool{false, true} {
			b.front.forget(b.hostile.Namespace())
			do := e.do
			if back {
				do = e.undo
			}
			if err := errors.Join(do(ctx, b), b.converged(ctx)); err != nil {
				return nil, fmt.Errorf("errand %s: %w", e.name, err)
			}
			asked := b.front.endpoints(b.hostile.Namespace())
			for _, endpoint := range sortedKeys(asked) {
				at := slices.IndexFunc(out, func(a Asked) bool { return a.Endpoint == endpoint })
				if at < 0 {
					out, at = append(out, Asked{Endpoint: endpoint, Errand: e.name, Back: back}), len(out)
				}
				out[at].JSON = out[at].JSON || asked[endpoint]
			}
		}
	}
	return out, nil
}

const (
	// restored is how long a hostile cluster may take to be well when its PD means no
	// harm any more. One that has believed lies may need a user: it is given up.
	restored = 40 * time.Second
)

var errNotRestored = fmt.Errorf("the hostile cluster is not well again within %s", restored)

// restore waits for what there was before an errand, beside a PD that means no harm any
// more. gone tells when the errand that was gone beside the other PD is done.
func (b *beside) restore(ctx context.Context, e errand, back bool, gone <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restored, errNotRestored)
	defer cancel()
	var err error
	select {
	case err = <-gone:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !back {
		err = e.undo(ctx, b)
	}
	if err == nil {
		err = b.converged(ctx)
	}
	if err != nil && context.Cause(ctx) == errNotRestored { //nolint:errorlint // it is that very one
		return fmt.Errorf("%w: %w", errNotRestored, err)
	}
	return err
}

// replicasOf is how many members a group asks for.
func replicasOf(group *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(group.Object, "spec", "replicas")
	return n
}
