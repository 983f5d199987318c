package clusterwide_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// PD-02, KV-01. What comes up is the scenario "bootstrap"; here is what only
// the database knows.
func TestTheDatabaseOfATidbClusterIsWhole(t *testing.T) {
	r := rig.New(t, plane, rig.Options{ClusterWide: true})
	r.Start(rig.Operators()...)
	r.Apply(sample.Parse[v1alpha1.TidbCluster](t, sample.Basic))
	r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "basic"})

	databases := r.Databases.List()
	require.Len(t, databases, 1)
	assert.Equal(t, 1, databases[0].Bootstraps(), "PD clusters that were bootstrapped")
	pd := &v1alpha1.PDGroup{}
	require.NoError(t, r.Get(pd, "basic-pd"))
	assert.Equal(t, fmt.Sprint(databases[0].Model().ClusterID()), pd.Status.ClusterID)
	stores, err := databases[0].Model().Cluster().Stores()
	require.NoError(t, err)
	assert.Len(t, stores, 4)
	placed := map[string]bool{}
	for _, s := range stores {
		for _, l := range s.Meta.Labels {
			if l.Key == "zone" && strings.Contains(s.Meta.Address, "tikv") {
				placed[l.Value] = true
			}
		}
	}
	assert.Len(t, placed, 3, "zones of the TiKV stores, from their nodes")
}

// milestones are the ends of the hops of a bootstrap.
func milestones(r *rig.Test, begin time.Time) string {
	at := func(kind, prefix, what string) time.Time { return r.Watcher.First(kind, prefix, what) }
	var parts []string
	last := begin
	step := func(name string, from, to time.Time) {
		parts = append(parts, fmt.Sprintf("%s %s", name, to.Sub(from).Round(time.Millisecond)))
		last = to
	}
	step("apply→PD Instances", begin, at(v1alpha1.KindInstance, "basic-pd", "Exists"))
	step("→PD pods exist", last, at("Pod", "basic-pd", "Exists"))
	step("→PD pods ready", last, at("Pod", "basic-pd", "Ready"))
	step("→PDGroup Ready", last, at(v1alpha1.KindPDGroup, "basic-pd", "Ready"))
	step("→TiKV Instances", last, at(v1alpha1.KindInstance, "basic-tikv", "Exists"))
	step("→TiKV pods exist", last, at("Pod", "basic-tikv", "Exists"))
	step("→TiKV pods ready", last, at("Pod", "basic-tikv", "Ready"))
	tikv := at(v1alpha1.KindTiKVGroup, "basic-tikv", "Ready")
	step("→TiKVGroup Ready", last, tikv)
	step("→TiDB Instances", tikv, at(v1alpha1.KindInstance, "basic-tidb", "Exists"))
	step("→TiDB pods ready", last, at("Pod", "basic-tidb", "Ready"))
	step("→TiDBGroup Ready", last, at(v1alpha1.KindTiDBGroup, "basic-tidb", "Ready"))
	step("TiKVGroup Ready→TiFlash Instances", tikv, at(v1alpha1.KindInstance, "basic-tiflash", "Exists"))
	step("→TiFlash pods ready", last, at("Pod", "basic-tiflash", "Ready"))
	step("→TiFlashGroup Ready", last, at(v1alpha1.KindTiFlashGroup, "basic-tiflash", "Ready"))
	step("→PD UpToDate", begin, at(v1alpha1.KindPDGroup, "basic-pd", "UpToDate"))
	step("→TiKV UpToDate", begin, at(v1alpha1.KindTiKVGroup, "basic-tikv", "UpToDate"))
	step("→cluster Ready", begin, at(v1alpha1.KindTidbCluster, "basic", "Ready"))
	step("→cluster UpToDate", begin, at(v1alpha1.KindTidbCluster, "basic", "UpToDate"))
	return strings.Join(parts, ", ")
}

// pods is how long the simulated world itself took on the critical path.
func pods(r *rig.Test) time.Duration {
	var sum time.Duration
	for _, prefix := range []string{"basic-pd", "basic-tikv", "basic-tidb"} {
		sum += r.Watcher.First("Pod", prefix, "Ready").Sub(r.Watcher.First("Pod", prefix, "Exists"))
	}
	return sum
}

func TestTheSuiteAddsLittleToThePodsOwnTime(t *testing.T) {
	for run := range 3 {
		t.Run(fmt.Sprintf("run %d", run), func(t *testing.T) {
			r := rig.New(t, plane, rig.Options{ClusterWide: true})
			r.Start(rig.Operators()...)
			before, used := r.Requests.Counts(), cpuNow()
			begin := time.Now()
			r.Apply(sample.Parse[v1alpha1.TidbCluster](t, sample.Basic))
			took := r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "basic"})
			fmt.Printf("overhead: run %d: %s from apply to everything Ready, %s of it the simulated pods' own (%s); %s; requests: %s; memory of the test process: %s\n",
				run, took.Round(time.Millisecond), pods(r).Round(time.Millisecond), milestones(r, begin), cpuNow().since(used), scenario.ByVerb(r.Requests.Since(before)), memory())
			if os.Getenv("RIG_LOG") != "" {
				for request, count := range r.Requests.Since(before) {
					fmt.Println("request:", count, request)
				}
			}
		})
	}
}

// memory is the RSS of the process and its heap: all operators, the
// simulated world and the tests.
func memory() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Sprintf("heap %d MB", m.HeapAlloc>>20)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return fmt.Sprintf("RSS %s, heap %d MB", strings.TrimSpace(value), m.HeapAlloc>>20)
		}
	}
	return fmt.Sprintf("heap %d MB", m.HeapAlloc>>20)
}
