package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
