package statusport_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// P11: what TiDB says yes to and ignores keeps nothing else from being given, and is the
// only one that is named, also among others that TiDB does not show.
func TestTiDBIsNotSentItemsThatItSilentlyIgnores(t *testing.T) {
	form := "none"
	server, host := loopback.NewServer(t, 10080, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, err := w.Write([]byte(`{"log": {"level": "debug"}}`))
			assert.NoError(t, err)
			return
		}
		assert.NoError(t, r.ParseForm())
		form = r.PostForm.Encode()
	}))
	server.Start()

	g, i := &v1alpha1.TiDBGroup{}, &v1alpha1.Instance{}
	i.Name, i.Generation = "db-0", 1
	i.Status.PodUID, i.Status.PodIP, i.Status.MadeFrom = "pod", host, "an-older-one"
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(i).Build()
	members := settings.NewMembers(statusport.SettingsTable(), statusport.Settings{}, func(work func(context.Context)) { work(t.Context()) }, time.Now)
	zero, on := settings.Value{Text: "0", Plain: "0"}, settings.Value{Text: "true", Plain: "true"}
	give := func(items map[string]settings.Value) observation.RunningConfig {
		i := i.DeepCopy()
		i.ResourceVersion = "999"
		members.Observe(g, []*v1alpha1.Instance{i})
		members.Give(t.Context(), live, events.NewFakeRecorder(9), g, []settings.Order{{Instance: i, Items: items}})
		running, _ := members.Observe(g, []*v1alpha1.Instance{i})
		return running["db-0"]
	}

	got := give(map[string]settings.Value{"instance.ddl_slow_threshold": zero})
	assert.Equal(t, "none", form)
	assert.Contains(t, got.Refused, "instance.ddl_slow_threshold")

	got = give(map[string]settings.Value{"instance.ddl_slow_threshold": zero, "instance.tidb_general_log": on, "log.level": {Text: "debug", Plain: "debug"}})
	assert.Equal(t, "log_level=debug&tidb_general_log=1", form)
	assert.Equal(t, map[string]observation.Refusal{"instance.ddl_slow_threshold": {Value: "0", Answer: "it would accept 0 and ignore it"}}, got.Refused)
	assert.Equal(t, map[string]string{"instance.tidb_general_log": "true"}, got.Taken)
}
