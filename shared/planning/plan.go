package planning

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Plan is what the operator of a group will do, and why.
type Plan struct {
	Objects
	ConfigChanges
	Disruptions
	LeaderEvictions

	// Instances to apply, with the live object of each.
	Instances []InstanceChange
	// Target is the revision that is wanted.
	Target revision.Target
	// Changes says how the target differs from the revision that was wanted before; empty
	// if it is the same, or that one is not known any more.
	Changes string
	// Gate that the group waits for.
	Gate gate.Result
	// Outcome is why the group is not what its spec asks for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string
}

// Object is what the API server stores.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are what is applied beside the Instances, and what nothing uses any more.
type Objects struct {
	// Services, ConfigMap and Revision to apply, in this order; ConfigMap and
	// Revision are nil when they are stored already.
	Services  []*corev1.Service
	ConfigMap *corev1.ConfigMap
	Revision  *appsv1.ControllerRevision
	// Budget to apply, nil for none.
	Budget *policyv1.PodDisruptionBudget
	// Prune are revisions and ConfigMaps that nothing uses any more.
	Prune []Object
}

// ConfigChanges are what becomes of the configuration of running members.
type ConfigChanges struct {
	// ConfigUpdates are configurations to send to running members, ConfigOutcome what
	// members still lack of theirs. The component reports it.
	ConfigUpdates []component.ConfigUpdate
	ConfigOutcome step.Outcome
}

// LeaderEvictions are what becomes of members that are to lead nothing because a user asks.
type LeaderEvictions struct {
	// Evictions are calls to PD for members that are to lead nothing because a user asks,
	// or to lead again. They are made last, and nothing waits for their effect.
	Evictions []component.Call
	// EvictionOutcome is which members still lead although they are not to, or do not lead
	// yet. The component reports it after everything else: no rollout waits for it.
	EvictionOutcome step.Outcome
	// UnansweredEviction is an Instance whose annotation does not yet say that it leads
	// nothing, or leads again.
	UnansweredEviction string
}

// CommonPlan returns the plan as a component embeds it in its own.
func (p Plan) CommonPlan() Plan { return p }

// InstanceChange is an Instance to create or to update.
type InstanceChange struct {
	// Desired Instance.
	Desired *v1alpha1.Instance
	// Live Instance, nil if it is to be created.
	Live *v1alpha1.Instance
	// Stops says that the change permits a pod to stop that serves.
	Stops bool
	// Rolls says that the change brings a new revision to a group whose members serve at
	// an old one.
	Rolls bool
}
