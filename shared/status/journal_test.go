package status_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/status"
)

// U 10: what was done at night can be read in the morning, by cluster, member and reason.
func TestEveryEventIsALineInTheLog(t *testing.T) {
	var lines []string
	now := time.Date(2026, 1, 2, 2, 13, 0, 0, time.UTC)
	recorder := events.NewFakeRecorder(10)
	j := &status.Journal{EventRecorder: recorder, Now: func() time.Time { return now }, Log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-tikv", UID: "g", Labels: map[string]string{v1alpha1.LabelUmbrella: "basic"}}}
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "basic-tikv-1", UID: "i", Labels: map[string]string{v1alpha1.LabelCluster: "basic-pd"}}}
	told := func() int {
		n := 0
		for len(recorder.Events) > 0 {
			<-recorder.Events
			n++
		}
		return n
	}

	j.Eventf(g, i, "Normal", "DisruptionBegun", "Restart", "Restart Instance %s: %s", i.Name, "spec.config")
	j.Eventf(i, nil, "Normal", "PodDeleted", "Reconcile", "deleted pod %s", i.Name)
	var none *v1alpha1.Instance
	j.Eventf(g, none, "Normal", "DeleteStore", "DeleteStore", "DeleteStore 4")
	assert.Equal(t, []string{
		`"level"=0 "msg"="Restart Instance basic-tikv-1: spec.config" "reason"="DisruptionBegun" "cluster"="db/basic" "object"="TiKVGroup/basic-tikv" "member"="basic-tikv-1"`,
		`"level"=0 "msg"="deleted pod basic-tikv-1" "reason"="PodDeleted" "cluster"="db/basic-pd" "object"="Instance/basic-tikv-1" "member"="basic-tikv-1"`,
		`"level"=0 "msg"="DeleteStore 4" "reason"="DeleteStore" "cluster"="db/basic" "object"="TiKVGroup/basic-tikv"`,
	}, lines)
	assert.Equal(t, 3, told())

	// An order that PD has not shown to have followed yet is given again, and told once.
	now = now.Add(time.Second)
	j.Eventf(g, nil, "Normal", "DeleteStore", "DeleteStore", "DeleteStore 4")
	assert.Zero(t, told())
	j.Eventf(g, nil, "Normal", "DeleteStore", "DeleteStore", "DeleteStore 5")
	now = now.Add(time.Minute)
	j.Eventf(g, nil, "Normal", "DeleteStore", "DeleteStore", "DeleteStore 4")
	assert.Equal(t, 2, told())
	assert.Len(t, lines, 5)

	status.Note(j.Log, status.About{Object: g, Related: i, Reason: "Updated"}, "changed Instance %s", i.Name)
	assert.Zero(t, told())
	assert.Len(t, lines, 6)

	// P12: a terminal obeys nothing that a PD has said.
	j.Eventf(g, nil, "Warning", "RequestFailed", "Reconcile", "PD said %s", "\x1b[31m no")
	assert.Equal(t, "Warning RequestFailed PD said ?[31m no", <-recorder.Events)
}

// The API server refuses an Event whose text is longer, and Kubernetes' recorder drops it: why a pod was
// restarted cannot be seen then. An overlay's script of two pages is such a text.
func TestALongEventIsCutAndNotLost(t *testing.T) {
	const most = 1024
	var logged string
	recorder := events.NewFakeRecorder(1)
	j := &status.Journal{EventRecorder: recorder, Now: time.Now, Log: funcr.New(func(_, args string) { logged = args }, funcr.Options{})}
	script := strings.Repeat("€", 2000)
	j.Eventf(&v1alpha1.TiKVGroup{}, nil, "Normal", "DisruptionBegun", "Restart", "Restart Instance a-0: %s", script)
	event := strings.TrimPrefix(<-recorder.Events, "Normal DisruptionBegun ")
	assert.LessOrEqual(t, len(event), most)
	assert.True(t, strings.HasPrefix(event, "Restart Instance a-0: €€€"))
	assert.True(t, utf8.ValidString(event))
	assert.Contains(t, logged, script, "the log has all of it")
}
