package component

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Rendering is what a component makes of its group's spec.
type Rendering struct {
	// Template of the pod, and what is wrong with the spec.
	Template corev1.PodTemplateSpec
	Problems []string
	// Inputs is the part of the spec that the template was rendered from. Two
	// equal inputs are one revision whatever the operator's version.
	Inputs any
	// Files of the ConfigMap, by name; the template mounts ConfigMapName of
	// them.
	Files map[string]string
	// Services of the group, and the part of the spec that only they were rendered
	// from; nil if there is none.
	Services      []*corev1.Service
	ServiceInputs any
	// Blocked says what a user has to fix before anything is made or restarted; the
	// zero value if nothing is.
	Blocked step.Outcome
	// Gate must be open before the first pod is started.
	Gate gate.Result
	// GateReason is the reason of a wait for the Gate.
	GateReason string
	// ReadinessGates of the Instances.
	ReadinessGates []string
	// ClaimLoss policy of the Instances.
	ClaimLoss v1alpha1.ClaimLossPolicy
	// AdjustTemplate changes the template of one Instance without making a revision of its
	// own, whatever an earlier call made of it; nil for none.
	AdjustTemplate func(slot int32, template *corev1.PodTemplateSpec)
	// PreferredSlots are filled before others: the database counts on their members.
	PreferredSlots []int32
	// AwaitedSlots are filled before others, even if there are enough members: the database
	// lists their members, and one that is not wanted has to leave it.
	AwaitedSlots []int32
	// CreateLimit bounds how many members are created at once, and says why; nil means no
	// bound.
	CreateLimit func() (limit int, reason string)
	// OnlineConfig is how running members take a changed configuration; nil for a
	// component that has to be restarted for it.
	OnlineConfig OnlineConfig
	// Component answers for the members when some of them are to be stopped.
	Component Component
	// ComponentFor returns what Component would be if PD had answered now what it answers
	// at that moment. It is asked right before what cannot be undone, because a poll is up
	// to a second old; nil for a component that does not depend on PD.
	ComponentFor func(now pd.View) Component
	// DatabaseUnknown says that nothing is known of the database now: what was done to it
	// may still be in force.
	DatabaseUnknown bool
	// RollGate must be open before members that serve get a new revision: the groups that
	// come before this one in an upgrade are done.
	RollGate gate.Result
	// MaySuspend says whether the pods of a suspended group may stop: groups that need this
	// one stop first.
	MaySuspend verdict.Verdict
	// Budget of all members of this component in the cluster; nil for none.
	Budget *policyv1.PodDisruptionBudget
	// Extra is how many members there are to be beyond spec.replicas, in place of members
	// that do not serve.
	Extra int32
	// Spread is how the members lie over the places that spec.rebalance names.
	Spread Spread
	// Surge is how many more members there may be, so that none is missed while others are
	// restarted.
	Surge int32
}

// Spread is how the members of a group lie over the places that spec.rebalance names.
type Spread struct {
	// By is spec.rebalance; empty for members that stay where they are.
	By string
	// Unknown says why it is not known how they lie.
	Unknown verdict.Reason
	// Uneven says which places differ too much.
	Uneven verdict.Reason
	// Unneeded says that they would lie evenly enough without the member that was added.
	Unneeded bool
	// NoGain says why the member that was added does not help: without it they would lie
	// as evenly as without the one that would leave, or that one is needed.
	NoGain verdict.Reason
}
