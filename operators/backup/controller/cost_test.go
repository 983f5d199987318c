package controller

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// sent counts writes by verb and resource.
func sent(writes []string) map[string]int {
	out := map[string]int{}
	for _, w := range writes {
		verb, path, _ := strings.Cut(w, " ")
		parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
		resource := parts[len(parts)-1]
		if len(parts) > 5 { // group, version, namespaces, NAME, resource, NAME and a subresource
			resource = strings.Join(append(parts[4:5], parts[6:]...), "/")
		}
		out[verb+" "+resource]++
	}
	return out
}

// Issue 21: at most 15 writes for a Backup beside its progress, and at most 5 s beside its tool.
func TestABackupTakesFewWritesAndLittleTime(t *testing.T) {
	for _, policy := range []v1alpha1.CleanupPolicy{v1alpha1.CleanupRetain, v1alpha1.CleanupDelete} {
		t.Run(string(policy), func(t *testing.T) {
			w := beginAlone(t)
			w.serve()
			b := w.backup("monday")
			b.Spec.CleanupPolicy = policy
			begun := time.Now()
			w.Create(b)
			w.job("monday-backup-1")
			made := time.Since(begun)
			w.state(b, v1alpha1.RunRunning, "JobRunning")
			ended := time.Now()
			w.end("monday-backup-1", result.Result{Bytes: 1 << 20, TSO: "42"}, metav1.Now())
			w.state(b, v1alpha1.RunComplete, "Ready=True")
			told := time.Since(ended)
			w.collect("monday-backup-1")
			w.RequireNoWrites(time.Second)
			writes := w.operator.Writes()
			t.Logf("%d writes: %v; Job made after %s, end told after %s", len(writes), sent(writes), made.Round(time.Millisecond), told.Round(time.Millisecond))
			assert.LessOrEqual(t, len(writes), 15, "%v", sent(writes))
			assert.Positive(t, sent(writes)["POST jobs"], "they are counted")
			assert.Less(t, made+told, machine.StretchWait(5*time.Second))
		})
	}
}

// Issue 21: 500 schedules cost nothing while none is due.
func TestManySchedulesAreIdle(t *testing.T) {
	const many, watched = 500, 10 * time.Second
	w := beginAlone(t)
	before := heap()
	for n := range many {
		s := &v1alpha1.BackupSchedule{ObjectMeta: w.Meta(fmt.Sprintf("s-%d", n))}
		s.Spec = v1alpha1.BackupScheduleSpec{Schedule: "0 2 1 1 *", Template: template()}
		w.Create(s)
	}
	require.Eventually(t, func() bool {
		var all v1alpha1.BackupScheduleList
		require.NoError(t, w.Client.List(t.Context(), &all, client.InNamespace(w.Namespace)))
		ready := 0
		for _, s := range all.Items {
			if s.Status.NextRun != nil {
				ready++
			}
		}
		return ready == many
	}, 5*time.Minute, time.Second)
	w.RequireNoWrites(2 * time.Second)
	sentBefore, used := len(w.operator.Writes()), processor(t)
	memory := heap() - before
	<-time.After(watched)
	t.Logf("%d BackupSchedules: %.1f writes each until they are Ready, %.1f MiB on the heap; idle for %s: %d writes, %s of processor time (this test's own included)",
		many, float64(sentBefore)/many, float64(memory)/(1<<20), watched, len(w.operator.Writes())-sentBefore, (processor(t) - used).Round(time.Millisecond))
	assert.Equal(t, sentBefore, len(w.operator.Writes()), "nothing is due")
	assert.Less(t, memory, int64(64<<20))
}

// heap is what the process keeps.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // not that much
}

// processor is what the process has used of it.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
