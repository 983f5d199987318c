package leaseclient

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// Read reads the Lease of a PDGroup.
func Read(ctx context.Context, c client.Reader, namespace, pdGroup string) (lease.State, error) {
	var l coordinationv1.Lease
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: lease.Name(pdGroup)}, &l)
	switch {
	case apierrors.IsNotFound(err):
		return lease.State{}, nil
	case err != nil:
		return lease.State{}, fmt.Errorf("get Lease %s: %w", lease.Name(pdGroup), err)
	}
	return parseState(&l), nil
}

func parseState(l *coordinationv1.Lease) lease.State {
	s := lease.State{Object: l}
	kind, name, ok := strings.Cut(ptr.Deref(l.Spec.HolderIdentity, ""), "/")
	if !ok {
		return s
	}
	s.Holder = lease.Holder{Kind: kind, Instance: name, UID: types.UID(l.Annotations[v1alpha1.AnnotationHolder])}
	if l.Spec.AcquireTime != nil {
		s.Since = l.Spec.AcquireTime.Time
	}
	if n, err := strconv.Atoi(l.Annotations[v1alpha1.AnnotationLeaders]); err == nil {
		s.Leaders = n
	}
	s.Recreating = l.Annotations[v1alpha1.AnnotationRecreating]
	s.Batch, s.BatchBlocked = parseBatch(l.Annotations[v1alpha1.AnnotationRestartBatch], s.Holder), parseBatchBlocked(l.Annotations[v1alpha1.AnnotationRestartBatchBlocked], s.Holder)
	return s
}

// IsHolderLost reports whether a holder does not exist any more: its Instance is gone,
// or another one has its name. Only one that reads from the API server knows.
func IsHolderLost(ctx context.Context, c client.Reader, namespace string, h lease.Holder) (bool, error) {
	var i v1alpha1.Instance
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: h.Instance}, &i)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get Instance %s: %w", h.Instance, err)
	}
	return i.UID != h.UID, nil
}

// IsRecreated reports whether a holder that is lost is recreated: its group is there
// and stays. Only one that reads from the API server knows.
func IsRecreated(ctx context.Context, c client.Reader, namespace string, s lease.State) (bool, error) {
	if s.Recreating == "" {
		return false, nil
	}
	group := &metav1.PartialObjectMetadata{}
	group.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(s.Holder.Kind))
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.Recreating}, group)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get %s %s: %w", s.Holder.Kind, s.Recreating, err)
	}
	return group.DeletionTimestamp == nil, nil
}

// Writer writes Leases as one field owner.
type Writer struct {
	// Client to write with.
	Client client.Client
	// Owner is the field owner, which is the operator's name.
	Owner string
}

// Take gives the right to the holder that next names. s must be the State that the
// decision was made from: if the Lease has changed since, Take fails with a
// conflict. A cluster is named by its PDGroup, which owns the Lease.
func (w Writer) Take(ctx context.Context, pdGroup *v1alpha1.PDGroup, s, next lease.State) error {
	l := s.Object.DeepCopy()
	if l == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: pdGroup.Namespace, Name: lease.Name(pdGroup.Name),
			Labels: leaseLabels(pdGroup),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup, Name: pdGroup.Name, UID: pdGroup.UID,
			}},
		}}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[v1alpha1.AnnotationHolder] = string(next.Holder.UID)
	l.Annotations[v1alpha1.AnnotationLeaders] = strconv.Itoa(next.Leaders)
	delete(l.Annotations, v1alpha1.AnnotationRecreating)
	delete(l.Annotations, v1alpha1.AnnotationRestartBatch)
	delete(l.Annotations, v1alpha1.AnnotationRestartBatchBlocked)
	if next.Recreating != "" {
		l.Annotations[v1alpha1.AnnotationRecreating] = next.Recreating
	}
	if len(next.Batch) > 0 {
		l.Annotations[v1alpha1.AnnotationRestartBatch] = batchText(next)
	}
	if next.BatchBlocked != "" {
		l.Annotations[v1alpha1.AnnotationRestartBatchBlocked] = string(next.Holder.UID) + " " + next.BatchBlocked
	}
	l.Spec.HolderIdentity = ptr.To(next.Holder.String())
	l.Spec.AcquireTime = &metav1.MicroTime{Time: next.Since}
	l.Spec.LeaseTransitions = ptr.To(ptr.Deref(l.Spec.LeaseTransitions, 0) + 1)
	return w.write(ctx, s.Object == nil, l)
}

// Relabel gives a Lease the labels back that operators find it by.
func (w Writer) Relabel(ctx context.Context, pdGroup *v1alpha1.PDGroup, s lease.State) error {
	l := s.Object.DeepCopy()
	l.Labels = labels.Merge(l.Labels, leaseLabels(pdGroup))
	return w.write(ctx, false, l)
}

func leaseLabels(pdGroup *v1alpha1.PDGroup) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb", v1alpha1.LabelCluster: pdGroup.Name}
}

// Release gives the right back. It fails with a conflict if the Lease has changed
// since s was read.
func (w Writer) Release(ctx context.Context, s lease.State) error {
	if s.Object == nil || s.IsFree() {
		return nil
	}
	l := s.Object.DeepCopy()
	delete(l.Annotations, v1alpha1.AnnotationHolder)
	delete(l.Annotations, v1alpha1.AnnotationLeaders)
	delete(l.Annotations, v1alpha1.AnnotationRecreating)
	delete(l.Annotations, v1alpha1.AnnotationRestartBatch)
	delete(l.Annotations, v1alpha1.AnnotationRestartBatchBlocked)
	l.Spec.HolderIdentity, l.Spec.AcquireTime = nil, nil
	return w.write(ctx, false, l)
}

// write creates or updates a Lease. An update carries the resourceVersion that
// was read: of two that want the right one gets it.
func (w Writer) write(ctx context.Context, create bool, l *coordinationv1.Lease) error {
	var err error
	if create {
		err = w.Client.Create(ctx, l, client.FieldOwner(w.Owner))
	} else {
		err = w.Client.Update(ctx, l, client.FieldOwner(w.Owner))
	}
	if err != nil {
		return fmt.Errorf("write Lease %s: %w", l.Name, err)
	}
	return nil
}
