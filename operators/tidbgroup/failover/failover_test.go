package failover

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// after is spec.failover.after of every group here.
const after = 5 * time.Minute

// group has two servers, and adds at most one.
func group(changes ...func(*v1alpha1.TiDBGroup)) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{}
	g.Spec.Replicas = ptr.To[int32](2)
	g.Spec.Failover = &v1alpha1.TiDBFailover{Max: 1, After: metav1.Duration{Duration: after}}
	for _, change := range changes {
		change(g)
	}
	return g
}

// server has been, or not been, Ready for a while.
func server(name string, ready metav1.ConditionStatus, since time.Duration) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(clock().Add(-24 * time.Hour))}}
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, LastTransitionTime: metav1.NewTime(clock().Add(-since))}}
	return i
}

func serves(name string, since time.Duration) *v1alpha1.Instance {
	return server(name, metav1.ConditionTrue, since)
}

func fails(name string, since time.Duration) *v1alpha1.Instance {
	return server(name, metav1.ConditionFalse, since)
}

// missed has another server in its place.
func missed(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Annotations = map[string]string{v1alpha1.AnnotationFailedOver: failedOver}
	return i
}

func deleted(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	return i
}

// unreported was made a while ago, and its operator has said nothing of it.
func unreported(name string, since time.Duration) *v1alpha1.Instance {
	return &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(clock().Add(-since))}}
}

// resumed was suspended, and has not served since a while after that.
func resumed(i *v1alpha1.Instance, since time.Duration) *v1alpha1.Instance {
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock().Add(-since))})
	return i
}

// stopped is still suspended, or its operator has not seen yet that it is not.
func stopped(i *v1alpha1.Instance) *v1alpha1.Instance {
	i.Status.Conditions[0].Reason = v1alpha1.ReasonSuspended
	return i
}

func TestDB06ServersThatDoNotServeForLongAreMissed(t *testing.T) {
	most := func(n int32) func(*v1alpha1.TiDBGroup) {
		return func(g *v1alpha1.TiDBGroup) { g.Spec.Failover.Max = n }
	}
	off := func(g *v1alpha1.TiDBGroup) { g.Spec.Failover = nil }
	suspended := func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true }
	for name, c := range map[string]struct {
		group   *v1alpha1.TiDBGroup
		servers []*v1alpha1.Instance
		missed  []string
		next    time.Duration
		back    bool
	}{
		"none, while all serve":                       {group(), []*v1alpha1.Instance{serves("a", time.Hour), serves("b", 0)}, nil, 0, false},
		"none before the time has come":               {group(), []*v1alpha1.Instance{fails("a", after-time.Second), serves("b", 0)}, nil, time.Second, false},
		"one that has not served for as long":         {group(), []*v1alpha1.Instance{fails("a", after), serves("b", 0)}, []string{"a"}, 0, false},
		"one without any condition yet":               {group(), []*v1alpha1.Instance{unreported("a", after), serves("b", 0)}, []string{"a"}, 0, false},
		"no more than may be added":                   {group(), []*v1alpha1.Instance{fails("a", after), fails("b", time.Hour)}, []string{"a"}, 0, false},
		"all that may be":                             {group(most(2)), []*v1alpha1.Instance{fails("a", after), fails("b", time.Hour)}, []string{"a", "b"}, 0, false},
		"not one that leaves":                         {group(), []*v1alpha1.Instance{deleted(fails("a", time.Hour)), serves("b", 0)}, nil, 0, false},
		"not one that was added itself":               {group(most(2)), []*v1alpha1.Instance{missed(fails("a", time.Hour)), serves("b", 0), fails("c", time.Hour)}, []string{"a"}, 0, false},
		"one that counts in place of one that leaves": {group(), []*v1alpha1.Instance{deleted(serves("a", 0)), serves("b", 0), fails("c", after)}, []string{"c"}, 0, false},
		"still the one that fails again":              {group(), []*v1alpha1.Instance{missed(fails("a", time.Second)), serves("b", 0)}, []string{"a"}, 0, false},
		"still the one that has not served for long":  {group(), []*v1alpha1.Instance{missed(serves("a", time.Minute)), serves("b", 0)}, []string{"a"}, 4 * time.Minute, true},
		"not the one that has":                        {group(), []*v1alpha1.Instance{missed(serves("a", after)), serves("b", 0)}, nil, 0, false},
		"none, if failover is off":                    {group(off), []*v1alpha1.Instance{fails("a", time.Hour)}, nil, 0, false},
		"none of a group that is suspended":           {group(suspended), []*v1alpha1.Instance{fails("a", time.Hour)}, nil, 0, false},
		"none that was resumed just now":              {group(), []*v1alpha1.Instance{resumed(fails("a", time.Hour), time.Minute), serves("b", 0)}, nil, 4 * time.Minute, false},
		"none that is resumed at the moment":          {group(), []*v1alpha1.Instance{stopped(fails("a", time.Hour)), serves("b", 0)}, nil, 0, false},
		"one that was resumed a while ago":            {group(), []*v1alpha1.Instance{resumed(fails("a", time.Hour), after), serves("b", 0)}, []string{"a"}, 0, false},
		"one that failed before it is up to date":     {group(), []*v1alpha1.Instance{resumed(fails("a", after), time.Hour), serves("b", 0)}, []string{"a"}, 0, false},
		"not the one that serves and is changed":      {group(), []*v1alpha1.Instance{resumed(missed(serves("a", after)), time.Second), serves("b", 0)}, nil, 0, false},
		"the next one to be missed sets when to look": {group(most(2)), []*v1alpha1.Instance{fails("a", time.Minute), fails("b", 3*time.Minute)}, nil, 2 * time.Minute, false},
		"no more once as many are missed as may be":   {group(), []*v1alpha1.Instance{fails("a", after), fails("b", time.Minute)}, []string{"a"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := FindMissing(c.group, observation.Snapshot{Now: clock(), Instances: c.servers})
			var names []string
			for server := range found.servers {
				names = append(names, server)
			}
			slices.Sort(names)
			assert.Equal(t, c.missed, names)
			assert.EqualValues(t, len(c.missed), found.Count)
			assert.Equal(t, c.next, found.next)
			assert.Equal(t, c.back, found.back != "")
		})
	}
}

func TestDB06AMissedServerIsMarked(t *testing.T) {
	change := func(live *v1alpha1.Instance) planning.InstanceChange {
		desired := live.DeepCopy()
		desired.Annotations = nil
		return planning.InstanceChange{Live: live, Desired: desired}
	}
	fresh := planning.InstanceChange{Desired: serves("a", 0)}
	changes := []planning.InstanceChange{change(fails("a", time.Hour)), change(serves("b", 0)), change(missed(serves("c", time.Hour))), change(deleted(fails("a", time.Hour))), fresh}
	Missing{servers: map[string]bool{"a": true}}.Mark(changes)
	for at, marked := range []bool{true, false, false, false, false} {
		assert.Equal(t, marked, changes[at].Desired.Annotations[v1alpha1.AnnotationFailedOver] != "", "change %d", at)
	}
}

func TestDB06TheGroupIsReconciledWhenAServerBecomesOverdue(t *testing.T) {
	wait := step.Wait("Instance", time.Minute, v1alpha1.ReasonCreating, "b starts")
	for name, c := range map[string]struct {
		missing Missing
		planned step.Outcome
		after   time.Duration
		reason  string
	}{
		"nothing is expected":                    {Missing{}, wait, time.Minute, v1alpha1.ReasonCreating},
		"before a wait ends":                     {Missing{next: 10 * time.Second}, wait, 10 * time.Second, v1alpha1.ReasonCreating},
		"no later than a wait ends":              {Missing{next: time.Hour}, wait, time.Minute, v1alpha1.ReasonCreating},
		"a server that is back is waited for":    {Missing{next: time.Minute, back: "a serves again"}, step.Done(), time.Minute, v1alpha1.ReasonRecovering},
		"a server that is not is not waited for": {Missing{next: time.Minute}, step.Done(), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.missing.Wake(c.planned)
			assert.Equal(t, c.after, o.After)
			assert.Equal(t, c.reason, o.Reason)
		})
	}
}
