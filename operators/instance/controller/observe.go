package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// defaultClassAnnotation marks the StorageClass that claims without one get.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// snapshot is everything that a plan may rest on.
type snapshot struct {
	instance *v1alpha1.Instance
	// now is when the snapshot was taken.
	now time.Time
	// gone says that the Instance does not exist any more.
	gone bool
	// err says that something could not be read: nothing else in the snapshot
	// but the Instance is to be relied on.
	err error
	// ownerless says that the group does not exist any more, or is about to go:
	// nobody will take the member out of a database first.
	ownerless bool
	// alone says that nobody owns the Instance, and that the group which it names
	// does not exist: nobody sets its spec back.
	alone bool
	// template is the decoded spec.podTemplate; nil with templateErr.
	template    *corev1.PodTemplateSpec
	templateErr error
	// pod of the Instance's name, whoever owns it; nil if there is none.
	pod *corev1.Pod
	// volumes in the order of the spec.
	volumes []volume
	// strays are claims of the Instance that its spec does not name any more.
	strays []*corev1.PersistentVolumeClaim
	// classes by name; nil where they may not be read, in a namespaced
	// installation.
	classes map[string]*storagev1.StorageClass
	// node is the one that a message is about, if there is such a message.
	node nodeState
}

// volume is one entry of spec.volumeClaimTemplates and what there is of it.
type volume struct {
	template v1alpha1.VolumeClaimTemplate
	// name of the claim.
	name string
	// recorded is the UID of the claim that the pod was, or is about to be,
	// started with; empty if none was recorded.
	recorded types.UID
	// claim that exists; nil if none does.
	claim *corev1.PersistentVolumeClaim
	// bound is the PersistentVolume of the claim, empty if it is not known.
	bound string
	// place is where the PersistentVolume can be used.
	place place
	// refused is the reason for which the API server has just not let the claim be
	// made or changed; empty if it has not been asked, or has.
	refused string
	// classless says that the VolumeAttributesClass which the spec asks for does
	// not exist. It is looked for as long as the volume does not have it.
	classless bool
	// dropped says that the API server has taken such a class from the claim
	// without a word, for the spec as it is: it does not know them.
	dropped bool
}

// observe reads everything. What the caches do not hold is read from the API
// server: they select by label and may lag. Where something is still to be
// made, so is the Instance: a pod must not be made from an old spec, and a
// claim that was recorded must not be taken for one that was not.
func (r *reconciler) observe(ctx context.Context, instance *v1alpha1.Instance) *snapshot {
	s := &snapshot{instance: instance, now: r.Now()}
	s.pod, s.err = get(ctx, r.Find, instance, instance.Name, &corev1.Pod{})
	if s.err != nil {
		return s
	}
	if s.pod != nil && (toStop(s) || !allRecorded(instance) || stopped(instance)) {
		if s.pod, s.err = get(ctx, r.live, instance, instance.Name, &corev1.Pod{}); s.err != nil {
			return s
		}
	}
	if s.pod == nil || !allRecorded(instance) {
		live := &v1alpha1.Instance{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(instance), live)
		switch {
		case apierrors.IsNotFound(err), err == nil && live.UID != instance.UID:
			s.gone = true
			return s
		case err != nil:
			s.err = fmt.Errorf("read Instance %s: %w", instance.Name, err)
			return s
		}
		s.instance = live
	}
	s.template, s.templateErr = decodeTemplate(s.instance.Spec.PodTemplate)
	for _, t := range s.instance.Spec.VolumeClaimTemplates {
		v := volume{template: t, name: names.Claim(t.Name, s.instance.Name), recorded: recordedClaim(s.instance, t.Name)}
		if v.claim, s.err = r.claim(ctx, s, v); s.err != nil {
			return s
		}
		if s.err = r.observeVolume(ctx, s, &v); s.err != nil {
			return s
		}
		if s.err = r.observeAttributes(ctx, s.instance, &v); s.err != nil {
			return s
		}
		s.volumes = append(s.volumes, v)
	}
	if s.instance.DeletionTimestamp != nil {
		s.strays, s.err = r.strays(ctx, s)
	}
	if s.err == nil {
		s.err = r.observeGroup(ctx, s)
	}
	if s.err == nil && r.ClusterScoped {
		s.classes, s.err = r.storageClasses(ctx)
	}
	if name := askedNode(s); s.err == nil && name != "" && r.ClusterScoped {
		s.node, s.err = r.observeNode(ctx, name)
	}
	return s
}

// observeNode looks at a node.
func (r *reconciler) observeNode(ctx context.Context, name string) (nodeState, error) {
	node := &corev1.Node{}
	switch err := r.Live.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return nodeState{known: true, absent: true}, nil
	case err != nil:
		return nodeState{}, fmt.Errorf("read node %s: %w", name, err)
	}
	return stateOf(node), nil
}

// stopped reports whether an Instance's pod may just have been stopped, by what the
// Instance asked for before or asks for no more. Who reads in status that it runs on
// goes by that, so a cache that does not show it yet will not do.
func stopped(instance *v1alpha1.Instance) bool {
	status := instance.Status
	pod := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPodReady)
	return status.ObservedGeneration != instance.Generation || pod == nil || pod.Status == metav1.ConditionUnknown || pod.Reason == v1alpha1.ReasonPodTerminating
}

// claim finds the claim of a volume, nil if there is none. A pod is made on what
// there is and not on what a cache remembers, and no claim is recorded or taken for
// the member's own by what a cache says. Nor is a pod stopped by that: a claim that is
// being deleted goes with it.
func (r *reconciler) claim(ctx context.Context, s *snapshot, v volume) (*corev1.PersistentVolumeClaim, error) {
	if s.pod != nil && !toStop(s) {
		seen, err := get(ctx, r.Find, s.instance, v.name, &corev1.PersistentVolumeClaim{})
		if err != nil || seen == nil || seen.UID == v.recorded {
			return seen, err
		}
	}
	return get(ctx, r.live, s.instance, v.name, &corev1.PersistentVolumeClaim{})
}

// toStop reports whether an Instance's spec asks for its pod to stop.
func toStop(s *snapshot) bool {
	spec := s.instance.Spec
	return s.pod.DeletionTimestamp == nil && (spec.Suspended || spec.StopPod == s.pod.UID || s.pod.Labels[v1alpha1.LabelRevision] != spec.Revision)
}

func (r *reconciler) live(ctx context.Context, key client.ObjectKey, into client.Object) error {
	return r.Live.Get(ctx, key, into)
}

// reader reads one object.
type reader func(ctx context.Context, key client.ObjectKey, into client.Object) error

// get reads an object of the Instance's namespace, nil if there is none.
func get[T client.Object](ctx context.Context, read reader, instance *v1alpha1.Instance, name string, into T) (T, error) {
	var none T
	switch err := read(ctx, client.ObjectKey{Namespace: instance.Namespace, Name: name}, into); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return into, nil
}

// observeVolume finds out whether the volume of a claim is tied to nodes. A
// volume's place never changes: what status says of it already is not asked
// again, unless the pod finds no place and an earlier version may not have
// noted which nodes are the volume's. Volumes belong to no namespace; a
// namespaced installation may not read them and goes without.
func (r *reconciler) observeVolume(ctx context.Context, s *snapshot, v *volume) error {
	if v.claim == nil || v.claim.Spec.VolumeName == "" || !r.ClusterScoped {
		return nil
	}
	name := v.claim.Spec.VolumeName
	for _, known := range s.instance.Status.Volumes {
		if known.Name == v.template.Name && known.PersistentVolume == name {
			v.bound, v.place = name, place{bound: known.NodeBound, nodes: known.Nodes}
			if len(known.Nodes) > 0 || s.pod == nil || !findsNoNode(s.pod) {
				return nil
			}
		}
	}
	pv := &corev1.PersistentVolume{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, pv)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	v.bound, v.place = name, placeOf(pv, v.claim)
	return nil
}

// observeAttributes finds out whether the VolumeAttributesClass of a volume can be
// had. An API server that does not serve them may still know them in claims: it
// says so by keeping what is asked for.
func (r *reconciler) observeAttributes(ctx context.Context, instance *v1alpha1.Instance, v *volume) error {
	wanted := v.template.VolumeAttributesClassName
	if wanted == nil || v.claim != nil && storage.Attributes(v.claim) == *wanted {
		return nil
	}
	v.dropped = instance.Status.ObservedGeneration == instance.Generation && slices.ContainsFunc(instance.Status.Volumes, func(known v1alpha1.VolumeStatus) bool {
		return known.Name == v.template.Name && known.Change == v1alpha1.ReasonAttributesUnsupported
	})
	if v.dropped || !r.ClusterScoped {
		return nil
	}
	err := r.Live.Get(ctx, client.ObjectKey{Name: *wanted}, &storagev1.VolumeAttributesClass{})
	switch {
	case err == nil, meta.IsNoMatchError(err):
		return nil
	case apierrors.IsNotFound(err):
		v.classless = true
		return nil
	}
	return fmt.Errorf("read VolumeAttributesClass %s: %w", *wanted, err)
}

// observeGroup asks the API server for the group of an Instance that nobody owns, or
// that is deleted and held by the group's operator. The others' owner is their group.
func (r *reconciler) observeGroup(ctx context.Context, s *snapshot) error {
	i, owner := s.instance, metav1.GetControllerOf(s.instance)
	left := i.DeletionTimestamp != nil && slices.Contains(i.Finalizers, v1alpha1.FinalizerMember)
	if owner != nil && !left {
		return nil
	}
	group := &metav1.PartialObjectMetadata{}
	group.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(i.Spec.Group.Kind))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.Spec.Group.Name}, group)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		s.ownerless, s.alone = left, owner == nil
	case err != nil:
		return fmt.Errorf("read %s %s: %w", i.Spec.Group.Kind, i.Spec.Group.Name, err)
	default:
		s.ownerless = left && (group.DeletionTimestamp != nil || owner != nil && owner.UID != group.UID)
	}
	return nil
}

// strays lists claims that carry the Instance's label, which its spec does not
// name.
func (r *reconciler) strays(ctx context.Context, s *snapshot) ([]*corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.instance.Namespace), client.MatchingLabels{v1alpha1.LabelInstance: s.instance.Name}); err != nil {
		return nil, fmt.Errorf("list claims of Instance %s: %w", s.instance.Name, err)
	}
	var out []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		claim := &list.Items[i]
		if !slices.ContainsFunc(s.volumes, func(v volume) bool { return v.name == claim.Name }) {
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

// recordedClaim returns the UID of the claim that status records for a volume.
func recordedClaim(instance *v1alpha1.Instance, volumeName string) types.UID {
	for _, v := range instance.Status.Volumes {
		if v.Name == volumeName {
			return v.ClaimUID
		}
	}
	return ""
}

// allRecorded says whether status records a claim for every volume.
func allRecorded(instance *v1alpha1.Instance) bool {
	return !slices.ContainsFunc(instance.Spec.VolumeClaimTemplates, func(t v1alpha1.VolumeClaimTemplate) bool {
		return recordedClaim(instance, t.Name) == ""
	})
}

// selectedNode is the annotation by which Kubernetes' scheduler tells for which
// node the volume of a claim was made.
const selectedNode = "volume.kubernetes.io/selected-node"

// maxNodes is how many nodes status has room for. A volume of more is not lost
// with its nodes.
const maxNodes = 64

// place is where a volume can be used.
type place struct {
	// bound says that it can be used on some nodes only.
	bound bool
	// nodes it can be used on, by name or by their host name label; nil if it is not
	// known to be tied to any.
	nodes []string
}

// placeOf returns where a volume can be used. A zone or a region is a place that
// outlives its nodes, and does not count.
func placeOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) place {
	out := place{bound: pv.Spec.Local != nil || pv.Spec.HostPath != nil}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return out
	}
	everywhere := false
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		pins, nodes := pinned(term, claim.Annotations[selectedNode])
		out.bound = out.bound || pins
		everywhere = everywhere || len(nodes) == 0
		out.nodes = append(out.nodes, nodes...)
	}
	slices.Sort(out.nodes)
	out.nodes = slices.Compact(out.nodes)
	if everywhere || len(out.nodes) > maxNodes {
		out.nodes = nil // a node has to satisfy one term only
	}
	return out
}

// pinned returns whether a term is about single nodes, and which ones if it names
// them: by their name, by their host name, or by a label of the storage driver
// whose value is the node for which the volume was made. Several requirements
// would all have to hold; those of one are enough to know when all are gone.
func pinned(term corev1.NodeSelectorTerm, made string) (bool, []string) {
	pins := false
	for _, r := range term.MatchFields {
		pins = true
		if r.Operator == corev1.NodeSelectorOpIn {
			return true, r.Values
		}
	}
	for _, r := range term.MatchExpressions {
		named := made != "" && slices.Equal(r.Values, []string{made})
		pins = pins || r.Key == corev1.LabelHostname
		if r.Operator == corev1.NodeSelectorOpIn && (r.Key == corev1.LabelHostname || named) {
			return true, r.Values
		}
	}
	return pins, nil
}
