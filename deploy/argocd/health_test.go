package argocd_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// health runs the check on an object as Argo CD does: the object is the global obj, the
// answer a table.
func health(t *testing.T, object any) (status, message string) {
	t.Helper()
	script, err := os.ReadFile("health.lua")
	require.NoError(t, err)
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(raw, &fields))
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", toLua(l, fields))
	require.NoError(t, l.DoString(string(script)))
	answer, ok := l.Get(-1).(*lua.LTable)
	require.True(t, ok)
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

func toLua(l *lua.LState, in any) lua.LValue {
	switch v := in.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, value := range v {
			table.RawSetString(key, toLua(l, value))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, value := range v {
			table.Append(toLua(l, value))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}

func TestArgoCDUnderstandsEveryState(t *testing.T) {
	wait := func(reason string) step.Outcome { return step.Wait("x", time.Minute, reason, "why") }
	for name, c := range map[string]struct {
		verdict         conditions.Verdict
		status, message string
	}{
		"all is well":               {conditions.Verdict{Serving: true, Summary: "3 of 3", Outcome: step.Done()}, "Healthy", "3 of 3"},
		"no members are asked for":  {conditions.Verdict{Summary: "spec.replicas is 0", Outcome: step.Done()}, "Healthy", "spec.replicas is 0"},
		"a store leads nothing":     {conditions.Verdict{Serving: true, Summary: "3 of 3", Outcome: step.Done(), NoteReason: "LeadersEvicted", Note: "n"}, "Healthy", "3 of 3"},
		"it starts":                 {conditions.Verdict{Outcome: wait("Creating")}, "Progressing", "why"},
		"a roll of what serves":     {conditions.Verdict{Serving: true, Outcome: wait("Restarting")}, "Progressing", "why"},
		"another does not serve":    {conditions.Verdict{Outcome: step.Done(), Unready: wait("StoresUnhealthy")}, "Progressing", "why"},
		"it fails, and tries again": {conditions.Verdict{Serving: true, Outcome: step.Fail("RequestFailed", os.ErrDeadlineExceeded)}, "Progressing", "i/o timeout"},
		"a user must act":           {conditions.Verdict{Serving: true, Outcome: step.Stall("InvalidSpec", "correct it")}, "Degraded", "correct it"},
		"a hold":                    {conditions.Verdict{Serving: true, Outcome: wait("UpdateHeld")}, "Suspended", "why"},
		"an upgraded operator":      {conditions.Verdict{Serving: true, Outcome: wait("NewRendering")}, "Suspended", "why"},
		"a volume that stays":       {conditions.Verdict{Serving: true, Outcome: wait(v1alpha1.ReasonVolumeChangePending)}, "Suspended", "why"},
		"members are replaced":      {conditions.Verdict{Serving: true, Outcome: wait(v1alpha1.ReasonReplacementPending)}, "Progressing", "why"},
		"a pause":                   {conditions.Verdict{Serving: true, Paused: true, Outcome: wait("Restarting")}, "Suspended", "paused: set spec.paused to false to go on"},
		"a suspension":              {conditions.Verdict{Suspended: true, Outcome: step.Done()}, "Suspended", "suspended: set spec.suspended to false to start it again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Generation: 3}}
			set := conditions.New(nil, 3, time.Now())
			set.Finish(c.verdict)
			g.Status.Conditions = set.List()
			status, message := health(t, g)
			assert.Equal(t, c.status, status)
			assert.Equal(t, c.message, message)

			g.Generation = 4
			status, message = health(t, g)
			assert.Equal(t, "Progressing", status, "what is said of an older spec counts for nothing")
			assert.Contains(t, message, "generation 4")
		})
	}
	status, _ := health(t, &v1alpha1.TidbCluster{})
	assert.Equal(t, "Progressing", status, "no operator has looked at it yet")
}

// The settings hold the script once for every kind.
func TestEveryKindHasTheCheck(t *testing.T) {
	script, err := os.ReadFile("health.lua")
	require.NoError(t, err)
	raw, err := os.ReadFile("argocd-cm.yaml")
	require.NoError(t, err)
	var settings struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal(raw, &settings))
	assert.Len(t, settings.Data, len(v1alpha1.Kinds()))
	for _, kind := range v1alpha1.Kinds() {
		assert.Equal(t, strings.TrimSpace(string(script)), strings.TrimSpace(settings.Data["resource.customizations.health."+v1alpha1.GroupName+"_"+kind]), kind)
	}
}
