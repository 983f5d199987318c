package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// KV-25: which edits restart stores, and which are given to them as they run.
func TestKV25OnlyItemsThatTiKVChangesOnlineNeedNoRestart(t *testing.T) {
	const before = "[raftstore]\nraft-entry-max-size = \"8MB\"\ncapacity = \"1GB\"\n"
	for name, c := range map[string]struct {
		config  string
		policy  v1alpha1.ConfigUpdatePolicy
		more    func(*v1alpha1.TiKVGroup)
		restart string
	}{
		"a value that TiKV takes":                  {"[raftstore]\nraft-entry-max-size = \"16MB\"\ncapacity = \"1GB\"\n", v1alpha1.ConfigOnline, nil, ""},
		"an item more that TiKV takes":             {before + "apply-pool-size = 3\n[log]\nlevel = \"warn\"\n", v1alpha1.ConfigOnline, nil, ""},
		"the same in the policy Restart":           {"[raftstore]\nraft-entry-max-size = \"16MB\"\ncapacity = \"1GB\"\n", v1alpha1.RestartForConfig, nil, "configMap"},
		"the same without a policy":                {"[raftstore]\nraft-entry-max-size = \"16MB\"\ncapacity = \"1GB\"\n", "", nil, "configMap"},
		"an item that TiKV reads when it starts":   {"[raftstore]\nraft-entry-max-size = \"8MB\"\ncapacity = \"2GB\"\n", v1alpha1.ConfigOnline, nil, "configMap"},
		"both in one edit":                         {"[raftstore]\nraft-entry-max-size = \"16MB\"\ncapacity = \"2GB\"\n", v1alpha1.ConfigOnline, nil, "configMap"},
		"an item that is taken away":               {"[raftstore]\ncapacity = \"1GB\"\n", v1alpha1.ConfigOnline, nil, "configMap"},
		"a list where a value should be":           {"[raftstore]\nraft-entry-max-size = [1]\ncapacity = \"1GB\"\n", v1alpha1.ConfigOnline, nil, "configMap"},
		"a version with it":                        {"[raftstore]\nraft-entry-max-size = \"16MB\"\ncapacity = \"1GB\"\n", v1alpha1.ConfigOnline, func(g *v1alpha1.TiKVGroup) { g.Spec.Version = "v9" }, "image"},
		"another spelling of the whole":            {"raftstore.capacity = \"1GB\"\nraftstore.raft-entry-max-size = \"8MB\" # as it was\n", v1alpha1.ConfigOnline, nil, ""},
		"a switch of the policy, and nothing else": {before, v1alpha1.RestartForConfig, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			g.Spec.Config = before
			s := world(t, g, 3)
			first, err := makePlan(g, observation.Snapshot{PDGroup: s.PDGroup})
			require.NoError(t, err)
			s.Revisions = []appsv1.ControllerRevision{*first.Revision}
			for _, i := range s.Instances {
				i.Status.PodIP = "10.0.0.1"
			}
			g.Spec.Config, g.Spec.ConfigUpdate = c.config, c.policy
			if c.more != nil {
				c.more(g)
			}
			p, err := makePlan(g, s)
			require.NoError(t, err)
			if c.restart != "" {
				require.NotNil(t, p.Lease.Take)
				assert.Contains(t, p.Lease.Why, c.restart)
				return
			}
			assert.Nil(t, p.Lease.Take, "%v", p.Notes)
			for _, change := range p.Instances {
				assert.Equal(t, change.Live.Spec.PodTemplate, change.Desired.Spec.PodTemplate)
				assert.Empty(t, change.Desired.Spec.StopPod)
			}
			assert.Empty(t, p.Orders, "no store is given anything before it is marked")
		})
	}
}

// P9: a member that says yes and keeps what it has is no reason to go round in
// circles.
func TestKV25AStoreThatAcceptsAnItemAndIgnoresItIsNamed(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	first, err := makePlan(g, observation.Snapshot{PDGroup: s.PDGroup})
	require.NoError(t, err)
	s.Revisions = []appsv1.ControllerRevision{*first.Revision}
	g.Spec.ConfigUpdate = v1alpha1.ConfigOnline
	g.Spec.Config += "[raftstore]\napply-pool-size = 3\n"
	next, err := makePlan(g, s)
	require.NoError(t, err)
	s.Running = map[string]observation.RunningConfig{}
	for n, i := range s.Instances {
		i.Status.PodIP = "10.0.0.1"
		i.Annotations = map[string]string{v1alpha1.AnnotationAppliedConfig: string(i.Status.PodUID) + " " + next.Target.Hash}
		s.Running[i.Name] = observation.RunningConfig{Pod: i.Status.PodUID, Values: map[string]string{"raftstore.apply-pool-size": "2"}, Tried: metav1.NewTime(now())}
		if n == 0 {
			refused := s.Running[i.Name]
			refused.Refused = map[string]observation.Refusal{"raftstore.apply-pool-size": {Value: "3", Answer: "it accepted the change, but has 2"}}
			s.Running[i.Name] = refused
		}
	}
	p, err := makePlan(g, s)
	require.NoError(t, err)
	assert.Equal(t, step.KindStall, p.Outcome.Kind)
	assert.Contains(t, p.Outcome.Message, "it accepted the change, but has 2")
	require.Len(t, p.Orders, 2, "the others are given it, and the one that refused is left alone for a while")
	assert.Positive(t, p.Outcome.After)
}

// P9: TiKV shows one name of a log level that has two. It is not given the other again and again.
func TestKV25ALogLevelIsTakenByEitherOfItsNames(t *testing.T) {
	for said, shown := range map[string]string{"warning": "warn", "warn": "warning", "critical": "fatal", "INFO": "info"} {
		judge := settings.Judge{
			Table: statusport.SettingsTable(), Group: sample(), Policy: v1alpha1.ConfigOnline, Now: now(),
			Running: map[string]observation.RunningConfig{"a": {Values: map[string]string{"log.level": settings.LogLevel.Normalize(shown)}}},
		}
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		given := judge.Progress(i, []map[string]string{{statusport.File: ""}}, map[string]string{statusport.File: "log.level = \"" + said + "\"\n"})
		assert.Equal(t, step.KindDone, given.Outcome.Kind, "%s, shown as %s: %s", said, shown, given.Outcome.Message)
	}
}

// KV-25: TiKV begins a periodic work at its start alone: one of which the interval was 0 then, or
// was 0 once, never begins again, whatever interval it is given and shows.
func TestKV25AnIntervalThatIsOrWasZeroNeedsARestart(t *testing.T) {
	const other = "is changed from or to 0"
	for _, c := range []struct{ before, after, why string }{
		{"lock-cf-compact-interval = \"5m\"", "lock-cf-compact-interval = \"0s\"", other},
		{"lock-cf-compact-interval = \"0s\"", "lock-cf-compact-interval = \"5m\"", other},
		{"", "lock-cf-compact-interval = \"0ms\"", other},
		{"", "lock-cf-compact-interval = \"1m\"", ""},
		{"lock-cf-compact-interval = \"5m\"", "lock-cf-compact-interval = \"6m\"", ""},
		{"lock-cf-compact-interval = \"0s\"", "lock-cf-compact-interval = \"0s\"\nsnap-gc-timeout = \"0s\"", ""},
		{"", "consistency-check-interval = \"1h\"", "raftstore.consistency-check-interval is changed"}, // it is 0 by default
	} {
		old, wanted := map[string]string{statusport.File: "[raftstore]\n" + c.before}, map[string]string{statusport.File: "[raftstore]\n" + c.after}
		why := statusport.SettingsTable().AppliesOnline(old, wanted).Reason()
		if c.why == "" {
			assert.Empty(t, why, c.after)
			continue
		}
		assert.Contains(t, why, c.why, "%s, then %s", c.before, c.after)
	}
}

// KV-25: some versions of TiKV say yes to these, show them, and go on with what they were started
// with.
func TestKV25AnItemThatSomeVersionsShowAndDoNotUseNeedsARestart(t *testing.T) {
	for item, values := range map[string][2]string{"import.num-threads": {"8", "16"}, "server.grpc-memory-pool-quota": {"\"8GB\"", "\"16GB\""}} {
		old, wanted := map[string]string{statusport.File: item + " = " + values[0]}, map[string]string{statusport.File: item + " = " + values[1]}
		assert.Equal(t, item+" is changed", statusport.SettingsTable().AppliesOnline(old, wanted).Reason())
	}
}

// KV-25: v7.5.7 and v8.5.4 put gc.auto-compaction in the place of these, and TiDB's documents list them no more
// among the items that change dynamically (pingcap/docs#21728 and #22251): a restart is what they are good for.
func TestKV25AnItemThatNewerVersionsHaveReplacedNeedsARestart(t *testing.T) {
	for _, c := range []struct{ key, before, after string }{
		{"check-interval", `"5m"`, `"6m"`}, {"check-step", "100", "200"}, {"min-tombstones", "10000", "20000"}, {"tombstones-percent", "30", "40"},
	} {
		file := func(value string) map[string]string {
			return map[string]string{statusport.File: "[raftstore]\nregion-compact-" + c.key + " = " + value + "\n"}
		}
		why := statusport.SettingsTable().AppliesOnline(file(c.before), file(c.after)).Reason()
		assert.Equal(t, "raftstore.region-compact-"+c.key+" is changed", why)
	}
}
