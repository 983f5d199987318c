package scenario_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// database is a world that has nothing but a database.
type database struct {
	scenario.World
	t      *testing.T
	server string
	proxy  *memorydb.Proxy
	client client.Client
}

func newDatabase(t *testing.T, events ...client.Object) *database {
	t.Helper()
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	server := memorydb.Start(t)
	return &database{t: t, server: server, proxy: memorydb.NewProxy(t, server), client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(events...).Build()}
}

func (d *database) Kind() string                                    { return scenario.Containers }
func (d *database) Namespace() string                               { return "ns" }
func (d *database) User() client.Client                             { return d.client }
func (d *database) StartOperators(context.Context, ...string) error { return nil }
func (d *database) Observed() scenario.Observed                     { return scenario.Observed{} }
func (d *database) Paste(context.Context, string, string) error     { return scenario.ErrNotHere }
func (d *database) Await(_ context.Context, holds func(objects.Set) error) error {
	return holds(objects.NewSet(nil))
}

func (d *database) Login(_ context.Context, l scenario.Login) (workload.Login, error) {
	if l.TiDBGroup != "c" {
		return workload.Login{}, scenario.ErrNotHere
	}
	return workload.Login{Address: d.proxy.Address(), User: l.UserName()}, nil
}

// Query runs a statement in the database of the workload.
func (d *database) Query(ctx context.Context, q scenario.SQL) (string, error) {
	db, err := sql.Open("mysql", "root@tcp("+d.server+")/tidb_groups_workload")
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, db.Close()) }()
	if q.Is == nil {
		_, err = db.ExecContext(ctx, q.Run)
		return "", err
	}
	answer := ""
	err = db.QueryRowContext(ctx, q.Run).Scan(&answer)
	return answer, err
}

func (d *database) WipeData(context.Context, []string) error { return scenario.ErrNotHere }

func (d *database) Folders(context.Context, string) ([]string, error) {
	return nil, scenario.ErrNotHere
}

// Crash stalls the database for a while, and cuts all connections if the pod is called so.
func (d *database) Crash(_ context.Context, pod string, _ int) error {
	d.proxy.Stall()
	over := time.NewTimer(700 * time.Millisecond)
	<-over.C
	if pod == "cut" {
		d.proxy.Cut()
	}
	d.proxy.Resume()
	return nil
}

func run(t *testing.T, world scenario.World, steps string) (scenario.Result, error) {
	t.Helper()
	s, err := scenario.Parse([]byte("name: x\nshows: A test.\nbears: [P1]\nworlds: [containers]\nsteps:\n- workload: {tidbGroup: c}\n" + steps))
	require.NoError(t, err)
	return scenario.Run(t.Context(), world, s)
}

func TestAnOperationIsCheckedAgainstItsAllowedCost(t *testing.T) {
	for name, c := range map[string]struct{ operation, says string }{
		"a pause":                    {"{name: x, pause: 300ms, steps: [{crash: {pod: stall}}]}", "a session paused for"},
		"a failed statement":         {"{name: x, failed: 0, steps: [{crash: {pod: cut}}]}", "statements failed, not 0"},
		"one on a long connection":   {"{name: x, failedLong: 0, steps: [{crash: {pod: cut}}]}", "statements failed on long connections, not 0"},
		"none on a long connection":  {"{name: x, failedLongAtLeast: 1, steps: [{start: [all]}]}", "0 statements failed on long connections, and not at least 1"},
		"a lost row":                 {"{name: x, steps: [{sql: {run: DELETE FROM numbers WHERE writer = 0}}]}", "lost rows among them"},
		"a step that cannot be done": {"{name: x, steps: [{sql: {run: DELETE FROM nothing}}]}", "operation x: step 1, "},
	} {
		t.Run(name, func(t *testing.T) {
			// One operation that is fine before, so that there are rows.
			result, err := run(t, newDatabase(t), "- operation: {name: nothing, failed: 0, failedLong: 0, steps: [{start: [all]}]}\n- operation: "+c.operation)
			assert.ErrorContains(t, err, "step 3, ")
			assert.ErrorContains(t, err, c.says)
			require.NotNil(t, result.Workload, "what was seen is reported all the same")
			assert.Len(t, result.Workload.Operations, 2)
		})
	}
}

func TestTheAllowedCostOfAnOperationIsNoError(t *testing.T) {
	result, err := run(t, newDatabase(t), "- operation: {name: nothing, steps: [{start: [all]}]}\n- operation: {name: x, failed: 100, failedLong: 100, failedLongAtLeast: 1, pause: 20s, steps: [{crash: {pod: cut}}]}")
	require.NoError(t, err)
	operation := result.Workload.Operations[1]
	assert.Equal(t, "x", operation.Name)
	assert.Positive(t, operation.Failed)
	assert.Positive(t, operation.FailedLong)
	assert.Greater(t, operation.Pause.Duration, 500*time.Millisecond)
	assert.Positive(t, operation.Acknowledged)
}

func TestALostRowFailsAScenarioWithoutOperations(t *testing.T) {
	_, err := run(t, newDatabase(t), "- operation: {name: nothing, steps: [{start: [all]}]}\n- sql: {run: DELETE FROM numbers WHERE writer = 0}\n")
	assert.ErrorContains(t, err, "of numbers was acknowledged and is not there")
	_, err = run(t, newDatabase(t), "- operation: {name: nothing, steps: [{start: [all]}]}\n- sql: {run: DELETE FROM numbers WHERE writer = 0}\n- workload: {end: true}\n- start: [all]")
	assert.ErrorContains(t, err, "step 4, ")
}

func TestEventsOfTheSuiteAreMarks(t *testing.T) {
	event := func(name, api string, at time.Time) client.Object {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, EventTime: metav1.NewMicroTime(at), Reason: "Reason-" + name, Note: "note",
			Regarding: corev1.ObjectReference{APIVersion: api, Kind: "TiKVGroup", Name: "b"},
		}
	}
	later := time.Now().Add(time.Hour)
	world := newDatabase(t, event("ours", "groups.tidb.dev/v1alpha1", later), event("other", "apps/v1", later), event("before", "groups.tidb.dev/v1alpha1", later.Add(-2*time.Hour)))
	result, err := run(t, world, "")
	require.NoError(t, err)
	require.Len(t, result.Workload.Marks, 1)
	assert.Equal(t, "Reason-ours", result.Workload.Marks[0].Row)
	assert.Equal(t, "TiKVGroup b: note", result.Workload.Marks[0].Text)
}

func TestAWorldWithoutADatabaseSaysSo(t *testing.T) {
	s, err := scenario.Parse([]byte("name: x\nshows: A test.\nbears: [P1]\nworlds: [containers]\nsteps:\n- workload: {tidbGroup: elsewhere}\n"))
	require.NoError(t, err)
	_, err = scenario.Run(t.Context(), newDatabase(t), s)
	assert.ErrorIs(t, err, scenario.ErrNotHere)
}

func TestTwoStatementsHaveToSayTheSame(t *testing.T) {
	compare := "- sql: {run: SELECT COUNT(*) FROM accounts, same: {run: "
	_, err := run(t, newDatabase(t), compare+"SELECT COUNT(id) FROM accounts}}")
	require.NoError(t, err)
	_, err = run(t, newDatabase(t), compare+"SELECT SUM(balance) FROM accounts}}")
	require.ErrorContains(t, err, "is expected")
	_, err = run(t, newDatabase(t), compare+"SELECT COUNT(*) FROM nothing}}")
	require.ErrorContains(t, err, "nothing")
	_, err = run(t, newDatabase(t), compare+"SELECT 20, snapshot: '${Backup a status.tso}'}}")
	require.ErrorContains(t, err, "read ${Backup a status.tso}", "a field that is not there")
}
