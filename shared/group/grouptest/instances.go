package grouptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
)

// tryApplyChange applies an Instance. It is refused if the operator's live look would
// show that the plan is outdated.
func (s *Simulation) tryApplyChange(seen observation.Snapshot, c planning.InstanceChange) bool {
	there := s.instances[c.Desired.Name]
	switch {
	case c.Live == nil && there != nil:
		return false
	case c.Live == nil:
		i := c.Desired.DeepCopy()
		i.UID, i.Generation, i.ResourceVersion, i.CreationTimestamp = s.nextUID("instance"), 1, s.nextVersion(), metav1.NewTime(s.Now)
		s.instances[i.Name], s.applied[i.Name] = i, c.Desired.Annotations
		return true
	case there == nil || there.UID != c.Live.UID:
		return false
	}
	if changesNothing(c) {
		return true
	}
	if there.ResourceVersion != c.Live.ResourceVersion {
		return false
	}
	if c.Stops {
		if seen.Lease.IsHeldBy(c.Live) && !reflect.DeepEqual(s.Lease, seen.Lease) {
			return false
		}
		if !seen.Lease.IsHeldBy(c.Live) && !slices.EqualFunc(s.Instances(), seen.Instances, func(a, b *v1alpha1.Instance) bool { return a.ResourceVersion == b.ResourceVersion }) {
			return false
		}
	}
	for key := range s.applied[there.Name] {
		delete(there.Annotations, key)
	}
	if there.Annotations == nil {
		there.Annotations = map[string]string{}
	}
	maps.Copy(there.Annotations, c.Desired.Annotations)
	s.applied[there.Name] = c.Desired.Annotations
	there.Finalizers = c.Desired.Finalizers
	if !equalSpecs(there, c.Desired) {
		c.Desired.Spec.DeepCopyInto(&there.Spec)
		there.Generation++
	}
	there.ResourceVersion = s.nextVersion()
	return true
}

// changesNothing reports whether a change would change nothing of what was seen.
func changesNothing(c planning.InstanceChange) bool {
	for _, key := range []string{v1alpha1.AnnotationSurge, v1alpha1.AnnotationDisruption, v1alpha1.AnnotationRestarted, v1alpha1.AnnotationAppliedConfig, v1alpha1.AnnotationFailedOver, v1alpha1.AnnotationLeadersEvicted} {
		if c.Live.Annotations[key] != c.Desired.Annotations[key] {
			return false
		}
	}
	return equalSpecs(c.Live, c.Desired) && slices.Equal(c.Live.Finalizers, c.Desired.Finalizers)
}

func equalSpecs(a, b *v1alpha1.Instance) bool {
	x, y := a.Spec, b.Spec
	if !bytes.Equal(x.PodTemplate.Raw, y.PodTemplate.Raw) {
		return false
	}
	x.PodTemplate, y.PodTemplate = runtime.RawExtension{}, runtime.RawExtension{}
	return equality.Semantic.DeepEqual(x, y)
}

// AddInstance puts a copy of an Instance on the stage as it is and, if its status names a
// pod, that pod.
func (s *Simulation) AddInstance(i *v1alpha1.Instance, ready bool) {
	i = i.DeepCopy()
	i.ResourceVersion = s.nextVersion()
	s.instances[i.Name], s.applied[i.Name] = i, maps.Clone(i.Annotations)
	if i.Status.PodUID == "" {
		return
	}
	pod := &Pod{Name: i.Name, UID: i.Status.PodUID, Revision: i.Status.Revision, MadeFrom: cmp.Or(i.Status.MadeFrom, i.Status.Revision), Ready: ready}
	if err := json.Unmarshal(i.Spec.PodTemplate.Raw, &pod.template); err != nil {
		panic(err) // a test's own mistake
	}
	s.pods[i.Name] = pod
}

// WriteMemberStatus writes what the group's operator says of the member of an Instance.
func (s *Simulation) WriteMemberStatus(m groupstatus.Member) {
	i := s.instances[m.Instance.Name]
	if i == nil || i.UID != m.Instance.UID {
		return
	}
	before := i.Status.DeepCopy()
	if m.Status != nil {
		i.Status.Member = m.Status
	}
	for _, c := range m.Conditions {
		meta.SetStatusCondition(&i.Status.Conditions, c)
	}
	s.touch(before, i)
}

// Delete deletes an Instance as a user does; it goes when its finalizers have.
func (s *Simulation) Delete(name string) {
	if i := s.instances[name]; i != nil && i.DeletionTimestamp == nil {
		i.DeletionTimestamp, i.ResourceVersion = ptr.To(metav1.NewTime(s.Now)), s.nextVersion()
		i.Generation++
	}
}

// Annotate annotates an Instance as a user does.
func (s *Simulation) Annotate(name, key, value string) {
	if i := s.instances[name]; i != nil {
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, value)
		i.ResourceVersion = s.nextVersion()
	}
}

// RemoveInstance removes an Instance, its finalizers notwithstanding.
func (s *Simulation) RemoveInstance(name string) {
	delete(s.instances, name)
	delete(s.applied, name)
	delete(s.pods, name)
}

// mergeConditions adds conditions to an Instance's status.
func mergeConditions(i *v1alpha1.Instance, set *conditions.Set) {
	for _, c := range set.List() {
		if old := meta.FindStatusCondition(i.Status.Conditions, c.Type); old != nil {
			*old = c
			continue
		}
		i.Status.Conditions = append(i.Status.Conditions, c)
	}
}

// touch gives an Instance whose status has changed a new resourceVersion.
func (s *Simulation) touch(before *v1alpha1.InstanceStatus, i *v1alpha1.Instance) {
	if !reflect.DeepEqual(*before, i.Status) {
		i.ResourceVersion = s.nextVersion()
	}
}
