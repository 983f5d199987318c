package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// failRule ends the test with what has happened, and how to see it again.
func (m *simulation) failRule(rule string) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s\nrun it again: %s=%d go test -count=1 -run '%s' ./tikvgroup/controller\n%s\n%s",
		m.seed, rule, seedsEnv, m.seed+1, m.t.Name(), strings.Join(m.steps, "\n"), m.describeState())
}

// requireSafeStop holds a plan that stops the pod of an Instance to P1. Regions have three voters.
// One that has a voter there and another on a store that is not Up, or about to stop, would lose
// its majority. A suspended group stops all, and stores that are restarted together are in one zone.
func (m *simulation) requireSafeStop(i *v1alpha1.Instance) {
	m.t.Helper()
	if m.group.Spec.Suspended || m.group.Spec.RestartTogether != "" {
		return
	}
	for _, s := range m.actual.PD.Stores {
		if s.ID != m.claims[i.Name] && s.State != pd.StateUp && s.Regions > 0 {
			m.failRule(fmt.Sprintf("P1: %s is stopped while store %s is %s", i.Name, s.ID, s.State))
		}
	}
	for _, other := range m.actual.Instances {
		if other.Name != i.Name && other.Status.PodUID == "" && m.findStore(m.claims[other.Name]) != nil {
			m.failRule(fmt.Sprintf("P1: %s is stopped while %s has no pod and PD lists its store", i.Name, other.Name))
		}
	}
}

// requireStoreLeft holds an Instance that is released for good to P3: its claim is retired, so
// PD must not list its store with regions any more.
func (m *simulation) requireStoreLeft(i *v1alpha1.Instance) {
	m.t.Helper()
	if s := m.findStore(m.claims[i.Name]); s != nil {
		m.failRule(fmt.Sprintf("P3: Instance %s is released as drained while store %s is %s", i.Name, s.ID, s.State))
	}
}

// undoMistakes ends all that disturbs the group, and what a user must undo. The last version, the
// replicas and annotations that ask for a restart or a removal stay, and are to be done.
func (m *simulation) undoMistakes() {
	m.group = m.group.DeepCopy()
	m.group.Generation++
	spec := &m.group.Spec
	spec.Paused, spec.Suspended, spec.Disruption = false, false, nil
	spec.Replicas = ptr.To(max(3, *spec.Replicas))
	if spec.RestartTogether != "" {
		spec.Replicas = ptr.To[int32](9)
	}
	m.pdDown, m.calm = false, true
	clear(m.unreachable)
	for _, i := range m.actual.Instances {
		m.editInstance(i.Name, func(i *v1alpha1.Instance) { delete(i.Annotations, v1alpha1.AnnotationEvictLeaders) })
	}
	m.addStep("nothing is disturbed any more: replicas %d, version %s", *spec.Replicas, spec.Version)
}

// requireConvergence holds an undisturbed group to P5 and P9: it becomes what its spec says, and
// nothing is written then.
func (m *simulation) requireConvergence() {
	m.t.Helper()
	idle := 0
	for range settleRounds {
		if m.playRound(neverCrash) > 0 || m.plan.Outcome.Kind != step.KindDone {
			idle = 0
		} else if idle++; idle == idleRounds {
			break
		}
	}
	var broken []string
	require := func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	o, s := m.plan.Outcome, m.actual
	require(idle == idleRounds, "P5, P9: the group does not become idle: %s %s: %s", o.Kind, o.Reason, o.Message)
	require(s.Lease.IsFree(), "P5: the Lease is held by %s", s.Lease.Holder)
	require(len(s.PD.EvictLeader) == 0, "P5: PD keeps leaders off stores %v", s.PD.EvictLeader)
	require(len(s.Instances) == int(*m.group.Spec.Replicas), "P5: %d Instances, %d are wanted", len(s.Instances), *m.group.Spec.Replicas)
	for _, i := range s.Instances {
		require(i.Spec.Revision == m.plan.Target.Hash, "P5: Instance %s is of revision %s, %s is wanted", i.Name, i.Spec.Revision, m.plan.Target.Hash)
		require(i.Annotations[v1alpha1.AnnotationDisruption] == "", "P5: Instance %s has annotations %v", i.Name, i.Annotations)
	}
	for _, store := range s.PD.Stores {
		require(store.State == pd.StateUp, "P5: store %s is %s with %d regions", store.ID, store.State, store.Regions)
	}
	if len(broken) > 0 {
		m.failRule(strings.Join(broken, "\n"))
	}
}

// describeState is what there is, for the message of a failure.
func (m *simulation) describeState() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, i := range m.actual.Instances {
		add("Instance %s: deleted %v, retire %v, revision %s of %s, pod %q, stopPod %q, annotations %v, member %v", i.Name, i.DeletionTimestamp != nil,
			i.Spec.Retire, i.Status.Revision, i.Spec.Revision, i.Status.PodUID, i.Spec.StopPod, i.Annotations, i.Status.Member)
		var conditions []string
		for _, c := range i.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		add("  %s", strings.Join(slices.Sorted(slices.Values(conditions)), " "))
	}
	for _, s := range m.actual.PD.Stores {
		add("store %s of %s: %s, %d leaders", s.ID, s.Address, s.State, s.Leaders)
	}
	o := m.plan.Outcome
	add("Lease of %q, batch %v; PD keeps leaders off %v; outcome %s %s: %s", m.actual.Lease.Holder, m.actual.Lease.Batch, m.actual.PD.EvictLeader, o.Kind, o.Reason, o.Message)
	return strings.Join(lines, "\n")
}
