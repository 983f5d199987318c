package execution

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Kubernetes' recorder counts Events that differ in their text alone as one, and keeps the first text:
// of two stores that are deleted at once the second would be nowhere.
func TestOrdersThatAreGivenTogetherAreOneEvent(t *testing.T) {
	fake := pdtest.New(pd.View{Stores: []pd.Store{{ID: "4", State: pd.StateUp}, {ID: "5", State: pd.StateUp}, {ID: "6", State: pd.StateUp}}})
	recorder := events.NewFakeRecorder(9)
	env := operator.Env{Recorder: recorder, PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return fake, nil })}
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

	fake.Refuse(errors.New("no"))
	assert.Equal(t, step.KindFail, callPD(t.Context(), env, &v1alpha1.TiKVGroup{}, calls).Kind)
	assert.Empty(t, recorder.Events, "what PD refuses is not done")
}
