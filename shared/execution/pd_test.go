package execution

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Kubernetes' recorder counts Events that differ in their text alone as one, and keeps the first text:
// of two stores that are deleted at once the second would be nowhere.
func TestOrdersThatAreGivenTogetherAreOneEvent(t *testing.T) {
	answers := pdtest.New(pd.View{Stores: []pd.Store{{ID: "4", State: pd.StateUp}, {ID: "5", State: pd.StateUp}, {ID: "6", State: pd.StateUp}}})
	recorder := events.NewFakeRecorder(9)
	env := operator.Env{Live: noted(t, "a-1", "a-2", "a-3"), Recorder: recorder, PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return answers, nil })}
	order := func(verb component.CallVerb, store, instance string) component.Call {
		return component.Call{Verb: verb, Target: store, Instance: instance}
	}
	calls := []component.Call{
		order(component.DeleteStore, "4", "a-1"), order(component.EvictLeaders, "6", "a-3"), order(component.DeleteStore, "5", "a-2"), order(component.RestoreStore, "6", "a-3"),
	}
	assert.Equal(t, step.Done(), callPD(t.Context(), env, &v1alpha1.TiKVGroup{}, calls))
	assert.Equal(t, "Normal DeleteStore DeleteStore 4 for Instance a-1, 5 for Instance a-2", <-recorder.Events)
	assert.Equal(t, "Normal RestoreStore RestoreStore 6 for Instance a-3", <-recorder.Events)
	assert.Empty(t, recorder.Events)

	answers.Refuse(errors.New("no"))
	assert.Equal(t, step.KindFail, callPD(t.Context(), env, &v1alpha1.TiKVGroup{}, calls).Kind)
	assert.Empty(t, recorder.Events, "what PD refuses is not done")
}

// noted is an API server with Instances on which it stands that PD is ordered something.
func noted(t *testing.T, names ...string) client.Client {
	t.Helper()
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range names {
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name}}
		i.Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
		b = b.WithObjects(i)
	}
	return b.Build()
}

// KV-15: an operator that stood still for a minute, or that starts beside an API server that lags, sees
// in its cache a disruption that is over. What it ordered of PD then nothing would take back.
func TestKV15PDIsOrderedOnlyWhatTheInstanceStillSays(t *testing.T) {
	for verb, noteMatters := range map[component.CallVerb]bool{
		component.EvictLeaders: true, component.DeleteStore: true, component.DeleteMember: true,
		component.StopEvictingLeaders: false, component.RestoreStore: false, component.TransferLeader: false,
	} {
		t.Run(string(verb), func(t *testing.T) {
			view := pd.View{Members: []pd.Member{{ID: "4", Name: "4"}}, Stores: []pd.Store{{ID: "4", State: pd.StateUp}}}
			api := noted(t, "over", "on")
			over := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "over"}}
			require.NoError(t, api.Patch(t.Context(), over, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))))
			for instance, may := range map[string]bool{"over": !noteMatters, "gone": !noteMatters, "on": true} {
				of := pdtest.New(view)
				env := operator.Env{Live: api, Recorder: events.NewFakeRecorder(9), PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return of, nil })}
				outcome := callPD(t.Context(), env, &v1alpha1.TiKVGroup{}, []component.Call{{Verb: verb, Target: "4", Instance: instance}})
				if may {
					assert.Equal(t, step.Done(), outcome, instance)
					assert.Len(t, of.Calls(), 1, instance)
					continue
				}
				assert.Equal(t, step.Conflict(v1alpha1.ReasonProgressing, "Instance "+instance+" has changed meanwhile"), outcome)
				assert.Empty(t, of.Calls(), instance)
			}
		})
	}
}
