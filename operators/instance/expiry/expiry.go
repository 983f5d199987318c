package expiry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// deadline is after how long a claim whose Instance is still there is looked at
// again.
const deadline = time.Minute

// Reconciler deletes retired claims whose time has come. Their Instances are gone, so
// that nothing else looks at them.
type Reconciler struct {
	operator.Env
}

// Add adds a Reconciler to the manager.
func Add(env operator.Env) error {
	marked := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetAnnotations()[v1alpha1.AnnotationExpires] != "" })
	err := ctrl.NewControllerManagedBy(env.Manager).
		Named(env.Name+"-expiry").
		For(&corev1.PersistentVolumeClaim{}, builder.WithPredicates(marked)).
		WithOptions(queueing.NewEdits().WithBackoff(env.Controller)).
		Complete(env.InScope(&Reconciler{Env: env}))
	if err != nil {
		return fmt.Errorf("add controller of claims that expire: %w", err)
	}
	return nil
}

// Decision is what becomes of a claim.
type Decision string

const (
	// Keep keeps it for good.
	Keep Decision = "keep"
	// KeepForNow keeps it for a while yet.
	KeepForNow Decision = "keep for now"
	// Delete deletes it.
	Delete Decision = "delete"
)

// Decide says what becomes of a claim, and when to look again.
func Decide(claim *corev1.PersistentVolumeClaim, now time.Time) (Decision, time.Duration) {
	switch at, ever := Expires(claim); {
	case !ever:
		return Keep, 0
	case at.After(now):
		return KeepForNow, at.Sub(now)
	}
	return Delete, 0
}

// Expires returns when a claim is deleted, false if never. Consent to its
// deletion is the time on it beside the mark that its member has left, both of
// which retention writes and anybody may take away. A time that cannot be read is
// none. A claim that was restored has the annotations of the one that was retired, and
// the time on it was not meant for it: it is kept for as long from when it was created.
// A copy under another name, which a user has made, has them as well, and is kept.
func Expires(claim *corev1.PersistentVolumeClaim) (time.Time, bool) {
	instance := claim.Labels[v1alpha1.LabelInstance]
	ours := claim.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && instance != "" &&
		!names.IsCopiedClaim(claim.Name, claim.Labels[v1alpha1.LabelVolume], instance) &&
		claim.Annotations[v1alpha1.AnnotationMadeBy] != "" && claim.Annotations[v1alpha1.AnnotationAdopt] == ""
	at, err := parseExpiry(claim)
	return at, ours && err == nil && claim.Annotations[v1alpha1.AnnotationRetired] != "" && claim.DeletionTimestamp == nil
}

// parseExpiry returns when a claim expires. A time that was written before the claim was made
// is not this claim's, unless it says for how long that one was to be kept.
func parseExpiry(claim *corev1.PersistentVolumeClaim) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, claim.Annotations[v1alpha1.AnnotationExpires])
	if err != nil {
		return at, err
	}
	uid, keep, _ := strings.Cut(claim.Annotations[v1alpha1.AnnotationExpiresClaim], " ")
	switch {
	case uid == string(claim.UID) && uid != "", uid == "" && claim.CreationTimestamp.Time.Before(at): // of these a user has written the time
		return at, nil
	case uid == "":
		return at, errOlder
	}
	length, err := time.ParseDuration(keep)
	if err != nil {
		return at, err
	}
	if again := claim.CreationTimestamp.Add(length); again.After(at) {
		at = again
	}
	return at, nil
}

// errOlder is why a time on a claim does not count.
var errOlder = errors.New("it is older than the claim")

// Reconcile deletes one claim if it has expired.
func (e *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := e.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if what, left := Decide(claim, e.Now()); what != Delete {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	live := &corev1.PersistentVolumeClaim{}
	if err := e.Live.Get(ctx, request.NamespacedName, live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if what, left := Decide(live, e.Now()); what != Delete || live.UID != claim.UID {
		return reconcile.Result{RequeueAfter: left}, nil // its watch reports it too
	}
	// A user may retire a claim by hand while its Instance still exists: keep the claim until it is gone.
	instance := &v1alpha1.Instance{}
	err := e.Live.Get(ctx, client.ObjectKey{Namespace: live.Namespace, Name: live.Labels[v1alpha1.LabelInstance]}, instance)
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: deadline}, nil
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("read the Instance of claim %s: %w", live.Name, err)
	}
	err = e.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.UID), ResourceVersion: ptr.To(live.ResourceVersion)})
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: step.ConflictDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("delete claim %s: %w", live.Name, err)
	}
	e.Recorder.Eventf(live, nil, corev1.EventTypeNormal, "ClaimDeleted", "Expire", "deleted claim %s: its member has left, and its retention ended at %s", live.Name, live.Annotations[v1alpha1.AnnotationExpires])
	return reconcile.Result{}, nil
}
