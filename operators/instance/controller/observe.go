package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// observe reads everything. What the caches do not hold is read from the API
// server: they select by label and may lag. Where something is still to be
// made, so is the Instance: a pod must not be made from an old spec, and a
// claim that was recorded must not be taken for one that was not.
func (r *reconciler) observe(ctx context.Context, instance *v1alpha1.Instance) *observation.Snapshot {
	s := &observation.Snapshot{Instance: instance, Now: r.Now()}
	s.Pod, s.Err = findObject(ctx, r.Find, instance, instance.Name, &corev1.Pod{})
	if s.Err != nil {
		return s
	}
	if s.Pod != nil && (observation.MustStop(s) || !observation.AreClaimsRecorded(instance) || observation.MayHaveStopped(instance)) {
		if s.Pod, s.Err = findObject(ctx, r.readLive, instance, instance.Name, &corev1.Pod{}); s.Err != nil {
			return s
		}
	}
	if s.Pod == nil || !observation.AreClaimsRecorded(instance) {
		live := &v1alpha1.Instance{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(instance), live)
		switch {
		case apierrors.IsNotFound(err), err == nil && live.UID != instance.UID:
			s.Gone = true
			return s
		case err != nil:
			s.Err = fmt.Errorf("read Instance %s: %w", instance.Name, err)
			return s
		}
		s.Instance = live
	}
	s.Template, s.TemplateErr = decodeTemplate(s.Instance.Spec.PodTemplate)
	for _, t := range s.Instance.Spec.VolumeClaimTemplates {
		v := observation.Volume{Template: t, Name: names.Claim(t.Name, s.Instance.Name), Recorded: observation.RecordedClaim(s.Instance, t.Name)}
		if v.Claim, s.Err = r.claim(ctx, s, v); s.Err != nil {
			return s
		}
		if s.Err = r.observeVolume(ctx, s, &v); s.Err != nil {
			return s
		}
		if s.Err = r.observeAttributes(ctx, s.Instance, &v); s.Err != nil {
			return s
		}
		s.Volumes = append(s.Volumes, v)
	}
	if s.Instance.DeletionTimestamp != nil {
		s.Strays, s.Err = r.listStrayClaims(ctx, s)
	}
	if s.Err == nil {
		s.Err = r.observeGroup(ctx, s)
	}
	if s.Err == nil && r.ClusterScoped {
		s.Classes, s.Err = r.storageClasses(ctx)
	}
	if name := podstate.AskedNode(s); s.Err == nil && name != "" && r.ClusterScoped {
		s.Node, s.Err = r.observeNode(ctx, name)
	}
	return s
}

// readAgain reads the Instance whose claims have just been recorded from the API server, and
// reports whether its spec is still the one that they were made for: a pod is made of what is
// recorded there, and of no older spec. The claims and that there is no pod were read, or made,
// right before.
func (r *reconciler) readAgain(ctx context.Context, s *observation.Snapshot) (same bool, err error) {
	live := &v1alpha1.Instance{}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Instance), live); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read Instance %s: %w", s.Instance.Name, err)
	case live.UID != s.Instance.UID || live.Generation != s.Instance.Generation:
		return false, nil // a deletion is another generation, too
	}
	s.Instance, s.Now = live, r.Now()
	for at := range s.Volumes {
		s.Volumes[at].Recorded = observation.RecordedClaim(live, s.Volumes[at].Template.Name)
	}
	return true, nil
}

// observeNode looks at a node.
func (r *reconciler) observeNode(ctx context.Context, name string) (observation.NodeState, error) {
	node := &corev1.Node{}
	switch err := r.Live.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return observation.NodeState{Known: true, Absent: true}, nil
	case err != nil:
		return observation.NodeState{}, fmt.Errorf("read node %s: %w", name, err)
	}
	return observation.StateOf(node), nil
}

// claim finds the claim of a volume, nil if there is none. It reads the API server and
// not the cache before a pod is made, a claim is recorded or adopted, or a pod is
// stopped: a claim that is being deleted is gone once its pod has stopped.
func (r *reconciler) claim(ctx context.Context, s *observation.Snapshot, v observation.Volume) (*corev1.PersistentVolumeClaim, error) {
	if s.Pod != nil && !observation.MustStop(s) {
		seen, err := findObject(ctx, r.Find, s.Instance, v.Name, &corev1.PersistentVolumeClaim{})
		if err != nil || seen == nil || seen.UID == v.Recorded {
			return seen, err
		}
	}
	return findObject(ctx, r.readLive, s.Instance, v.Name, &corev1.PersistentVolumeClaim{})
}

func (r *reconciler) readLive(ctx context.Context, key client.ObjectKey, into client.Object) error {
	return r.Live.Get(ctx, key, into)
}

// reader reads one object.
type reader func(ctx context.Context, key client.ObjectKey, into client.Object) error

// findObject reads an object of the Instance's namespace, nil if there is none.
func findObject[T client.Object](ctx context.Context, read reader, instance *v1alpha1.Instance, name string, into T) (T, error) {
	var none T
	switch err := read(ctx, client.ObjectKey{Namespace: instance.Namespace, Name: name}, into); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return into, nil
}

// observeVolume finds out where the volume of a claim can be used. That never changes: what status
// says of it is not asked again, unless the pod finds no place or another version wrote it, which may
// not have noted all of it; what status is to say is remembered until it does. A namespaced
// installation may not read volumes, and goes without.
func (r *reconciler) observeVolume(ctx context.Context, s *observation.Snapshot, v *observation.Volume) error {
	if v.Claim == nil || v.Claim.Spec.VolumeName == "" || !r.ClusterScoped {
		return nil
	}
	name, instance := v.Claim.Spec.VolumeName, client.ObjectKeyFromObject(s.Instance)
	place, said := observation.SaidPlace(s.Instance, v.Template.Name, name)
	current := said && s.Instance.Status.OperatorVersion == r.Status.Version
	if said {
		v.Bound, v.Place = name, place
	}
	if current {
		r.places.Forget(instance)
	}
	if current && (len(place.Nodes) > 0 || s.Pod == nil || !podstate.IsUnschedulable(s.Pod)) {
		return nil
	}
	if place, noted := r.places.Find(instance, v.Claim.UID); noted {
		v.Bound, v.Place = name, place
		return nil
	}
	pv := &corev1.PersistentVolume{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, pv)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	v.Bound, v.Place = name, observation.PlaceOf(pv, v.Claim)
	r.places.Note(instance, v.Claim.UID, v.Place)
	return nil
}

// observeAttributes finds out whether the VolumeAttributesClass of a volume can be
// had. An API server that does not serve them may still know them in claims: it
// says so by keeping what is asked for.
func (r *reconciler) observeAttributes(ctx context.Context, instance *v1alpha1.Instance, v *observation.Volume) error {
	wanted := v.Template.VolumeAttributesClassName
	if wanted == nil || v.Claim != nil && storage.AttributesClass(v.Claim) == *wanted {
		return nil
	}
	v.Dropped = instance.Status.ObservedGeneration == instance.Generation && slices.ContainsFunc(instance.Status.Volumes, func(known v1alpha1.VolumeStatus) bool {
		return known.Name == v.Template.Name && known.Change == v1alpha1.ReasonVolumeAttributesUnsupported
	})
	if v.Dropped || !r.ClusterScoped {
		return nil
	}
	err := r.Live.Get(ctx, client.ObjectKey{Name: *wanted}, &storagev1.VolumeAttributesClass{})
	switch {
	case err == nil, meta.IsNoMatchError(err):
		return nil
	case apierrors.IsNotFound(err):
		v.Classless = true
		return nil
	}
	return fmt.Errorf("read VolumeAttributesClass %s: %w", *wanted, err)
}

// observeGroup asks the API server for the group of an Instance without an owner, or
// that is deleted and held by the group's operator. The others' owner is their group.
func (r *reconciler) observeGroup(ctx context.Context, s *observation.Snapshot) error {
	i, owner := s.Instance, metav1.GetControllerOf(s.Instance)
	left := i.DeletionTimestamp != nil && slices.Contains(i.Finalizers, v1alpha1.FinalizerMember)
	if owner != nil && !left {
		return nil
	}
	group := &metav1.PartialObjectMetadata{}
	group.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(i.Spec.Group.Kind))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.Spec.Group.Name}, group)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		s.Ownerless, s.Alone = left, owner == nil
	case err != nil:
		return fmt.Errorf("read %s %s: %w", i.Spec.Group.Kind, i.Spec.Group.Name, err)
	default:
		s.Ownerless = left && (group.DeletionTimestamp != nil || owner != nil && owner.UID != group.UID)
	}
	return nil
}

// listStrayClaims lists claims that carry the Instance's label, which its spec does not
// name.
func (r *reconciler) listStrayClaims(ctx context.Context, s *observation.Snapshot) ([]*corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Instance.Namespace), client.MatchingLabels{v1alpha1.LabelInstance: s.Instance.Name}); err != nil {
		return nil, fmt.Errorf("list claims of Instance %s: %w", s.Instance.Name, err)
	}
	var out []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		claim := &list.Items[i]
		if !slices.ContainsFunc(s.Volumes, func(v observation.Volume) bool { return v.Name == claim.Name }) {
			out = append(out, claim)
		}
	}
	return out, nil
}

func (r *reconciler) storageClasses(ctx context.Context) (map[string]*storagev1.StorageClass, error) {
	list := &storagev1.StorageClassList{}
	if err := r.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list StorageClasses: %w", err)
	}
	out := make(map[string]*storagev1.StorageClass, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}
