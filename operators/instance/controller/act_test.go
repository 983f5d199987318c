package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// KV-23, VOL-01: the status that follows the change of a claim tells of the claim
// as it is after it, so that no reader takes the Instance for up to date in between.
func TestAVolumeThatHasJustBeenAskedToGrowIsNotUpToDate(t *testing.T) {
	s := world(t, func(s *observation.Snapshot) { s.Volumes[0].Template.Storage = resource.MustParse("2Gi") })
	r := &reconciler{Env: operator.Env{
		Client:   fake.NewClientBuilder().WithObjects(s.Volumes[0].Claim.DeepCopy()).Build(),
		Recorder: events.NewFakeRecorder(1),
	}}
	p := makePlan(s)
	acted := r.act(t.Context(), s, p)
	require.Equal(t, step.KindDone, acted.Kind, acted.Message)

	after := reportStatus(s, p, acted, clock()).after
	upToDate := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionUpToDate)
	assert.Equal(t, v1alpha1.ReasonVolumeChanging, upToDate.Reason, upToDate.Message)
	assert.Equal(t, "2Gi", after.Volumes[0].Requested.String())
}

// P3: that a claim may not grow, as a static volume may not, keeps it neither from our labels nor
// from another VolumeAttributesClass. Without labels it would not be retired when its member
// leaves, and the next member in its slot would start on the data of the one that has left.
func TestWhatAClaimMayNotGetKeepsItFromNothingElse(t *testing.T) {
	s := world(t, attributes("gold", "", ""), func(s *observation.Snapshot) {
		s.Volumes[0].Template.Storage = resource.MustParse("2Gi")
		s.Volumes[0].Claim.Labels = nil
	})
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(s.Volumes[0].Claim.DeepCopy()).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if body, err := p.Data(o); err != nil || strings.Contains(string(body), "resources") {
				return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), o.GetName(), errors.New("the storageclass that provisions the pvc must support resize"))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	r := &reconciler{Env: operator.Env{Client: api, Recorder: events.NewFakeRecorder(9)}}
	p := makePlan(s)
	acted := r.act(t.Context(), s, p)
	assert.Equal(t, v1alpha1.ReasonClaimRejected, acted.Reason, acted.Message)

	live := &corev1.PersistentVolumeClaim{}
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(s.Volumes[0].Claim), live))
	assert.Equal(t, "basic-pd-0", live.Labels[v1alpha1.LabelInstance])
	assert.Equal(t, ptr.To("gold"), live.Spec.VolumeAttributesClassName)
	after := reportStatus(s, p, acted, clock()).after
	assert.Equal(t, v1alpha1.ReasonClaimRejected, after.Volumes[0].Change)
	assert.Equal(t, live.Labels, s.Volumes[0].Claim.Labels, "the snapshot has the claim as it is by now")
}

// P9: that the API server drops a VolumeAttributesClass is remembered in status, also of a claim
// that may not grow: else it would be asked for again, with an Event, every few seconds.
func TestADroppedVolumeAttributesClassIsRememberedBesideARefusal(t *testing.T) {
	s := world(t, attributes("gold", "", ""), dropped, func(s *observation.Snapshot) { s.Volumes[0].Refused = v1alpha1.ReasonQuotaExceeded })
	assert.Equal(t, v1alpha1.ReasonVolumeAttributesUnsupported, reportStatus(s, makePlan(s), step.Done(), clock()).after.Volumes[0].Change)
}

// P1: a webhook that must be asked about every pod, and does not answer, would leave the member of
// a pod that is stopped for an update without one, and so would a policy that forbids the new one: engines
// of policies are webhooks, and some deny with no code but that of a bad request.
func TestAPodIsLeftRunningWhileItsReplacementCannotBeMade(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		dryRun  error
		stopped bool
	}{
		"nothing is in the way":        {nil, true},
		"it is invalid":                {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "basic-pd-0", nil), false},
		"a policy of Kubernetes' own":  {apierrors.NewForbidden(pods, "basic-pd-0", errors.New("violates PodSecurity")), false},
		"a webhook does not answer":    {apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": connection refused`)), false},
		"a webhook knows no dry run":   {apierrors.NewBadRequest("admission webhook does not support dry run"), true},
		"a webhook is against it":      {apierrors.NewForbidden(pods, "basic-pd-0", errors.New(`admission webhook "a.b.c" denied the request`)), false},
		"a webhook gives no code":      {&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: `admission webhook "a.b.c" denied the request: no such image`}}, false},
		"webhooks take too long":       {apierrors.NewTimeoutError("request did not complete within requested timeout", 0), false},
		"a pod has its name":           {apierrors.NewAlreadyExists(pods, "basic-pd-0-next"), true},
		"a quota is too small for two": {apierrors.NewForbidden(pods, "basic-pd-0", errors.New("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3")), true},
		"for two that ask for more":    {apierrors.NewForbidden(pods, "basic-pd-0", errors.New("exceeded quota: q, requested: limits.memory=5Gi,requests.cpu=4, used: limits.memory=9Gi,requests.cpu=6, limited: limits.memory=10Gi,requests.cpu=8")), true},
		"for the new one alone":        {apierrors.NewForbidden(pods, "basic-pd-0", errors.New("exceeded quota: q, requested: requests.cpu=4500m, used: requests.cpu=6, limited: requests.cpu=8")), false},
		"for its limits":               {apierrors.NewForbidden(pods, "basic-pd-0", errors.New("exceeded quota: q, requested: limits.memory=6Gi,requests.cpu=4, used: limits.memory=9Gi,requests.cpu=6, limited: limits.memory=10Gi,requests.cpu=8")), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := world(t, revised(image("pingcap/pd:v9")))
			s.Pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
			}
			scheme := runtime.NewScheme()
			require.NoError(t, errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
			api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.Pod.DeepCopy(), s.Instance.DeepCopy()).Build(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.dryRun },
			})
			r := &reconciler{Env: operator.Env{Client: api, Live: api, Recorder: events.NewFakeRecorder(9)}}
			acted := r.act(t.Context(), s, makePlan(s))
			err := api.Get(t.Context(), client.ObjectKeyFromObject(s.Pod), &corev1.Pod{})
			assert.Equal(t, c.stopped, apierrors.IsNotFound(err), acted.Message)
			if !c.stopped {
				assert.Equal(t, v1alpha1.ReasonPodRejected, acted.Reason, acted.Message)
			}
		})
	}
}
