package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Kubernetes' recorder counts Events that differ in their text alone as one, and keeps the first text.
func TestLabelsThatAreSetTogetherAreOneEvent(t *testing.T) {
	fake := pdtest.New(pd.View{Stores: []pd.Store{{ID: "4"}, {ID: "6"}}})
	recorder := events.NewFakeRecorder(9)
	env := operator.Env{Recorder: recorder, PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return fake, nil })}
	change := func(store, instance, zone string) placement.LabelChange {
		return placement.LabelChange{StoreID: store, Instance: instance, Labels: map[string]string{"zone": zone}}
	}
	changes := []placement.LabelChange{change("4", "kv-0", "a"), change("5", "kv-1", "b"), change("6", "kv-2", "c")}
	assert.Equal(t, step.KindFail, SetLabels(t.Context(), env, &v1alpha1.TiKVGroup{}, changes).Kind, "store 5 is not there")
	assert.Equal(t, "Normal StoreLabelsSet Set labels zone=a of store 4 (Instance kv-0), zone=c of store 6 (Instance kv-2)", <-recorder.Events)
	assert.Empty(t, recorder.Events)
}
