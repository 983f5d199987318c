package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// P1: PD calls a store Up that crashes again and again. It is not counted on, in
// whatever group it is, but by one that stands no better.
func TestAStoreThatIsUpInPDButNotReadyInKubernetesDoesNotCount(t *testing.T) {
	const firm, shaky, fallen = "firm", "shaky", "fallen"
	pods := map[string]map[string]func(*v1alpha1.Instance){
		firm: {"ready": func(*v1alpha1.Instance) {}},
		shaky: {
			"runs and is not ready":        func(i *v1alpha1.Instance) { podIs(i, v1alpha1.ReasonPodNotReady) },
			"is ready between two crashes": func(i *v1alpha1.Instance) { i.Status.Conditions = between(i) },
			"nothing is known of":          func(i *v1alpha1.Instance) { i.Status.Conditions = nil },
		},
		fallen: {
			"crashes":        func(i *v1alpha1.Instance) { podIs(i, v1alpha1.ReasonContainerCrashing) },
			"gets no image":  func(i *v1alpha1.Instance) { podIs(i, v1alpha1.ReasonImagePullFailed) },
			"lacks a Secret": func(i *v1alpha1.Instance) { podIs(i, v1alpha1.ReasonMissingReference) },
		},
	}
	worse := map[string]int{firm: 0, shaky: 1, fallen: 2}
	for own, mine := range pods {
		for other, theirs := range pods {
			for a, change := range mine {
				for b, spoil := range theirs {
					for _, foreign := range []bool{false, true} {
						g, s := world()
						change(s.Instances[0])
						spoil(s.Instances[2])
						if foreign {
							s.Instances, s.Siblings = s.Instances[:2], s.Instances[2:]
						}
						got := tikv(g, s).OthersWork(s.Instances[0]).Reason()
						if worse[other] > worse[own] {
							assert.Contains(t, got, "the pod of Instance kv-2 is not ready, or stops again and again", "%s beside one that %s", a, b)
						} else {
							assert.Empty(t, got, "%s beside one that %s", a, b)
						}
						s.PD.Stores[2].Regions = 0
						assert.Empty(t, tikv(g, s).OthersWork(s.Instances[0]).Reason(), "nothing counts on it")
					}
				}
			}
		}
	}
}

// between is an Instance whose pod is ready, and has crashed several times.
func between(i *v1alpha1.Instance) []metav1.Condition {
	pod := is(v1alpha1.ConditionPodReady, metav1.ConditionTrue)
	pod.Reason = v1alpha1.ReasonContainerCrashing
	return append(i.Status.Conditions[:0:0], is(v1alpha1.ConditionReady, metav1.ConditionTrue), pod)
}

// Who is being prepared to stop is let be when another store crashes, and who holds
// the Lease says which one and what to look at.
func TestACrashOfAnotherStoreEndsAPreparation(t *testing.T) {
	g, s := world()
	c := tikv(g, s)
	assert.Empty(t, c.OthersWork(s.Instances[0]).Reason())
	podIs(s.Instances[1], v1alpha1.ReasonContainerCrashing)
	assert.Contains(t, tikv(g, s).OthersWork(s.Instances[0]).Reason(), "Instance kv-1")
	assert.Contains(t, tikv(g, s).OthersWork(s.Instances[0]).Reason(), "describe instance kv-1")
	assert.False(t, tikv(g, s).IsNotServing(s.Instances[1]), "PD may have given it leaders since")
	s.PD.Stores[1].State = pd.StateDisconnected
	assert.True(t, tikv(g, s).IsNotServing(s.Instances[1]))
}
