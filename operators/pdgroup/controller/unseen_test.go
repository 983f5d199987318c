package controller

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// outages are what PD may be like when it is of no help.
func outages() map[string]func(*observation.Snapshot) {
	return map[string]func(*observation.Snapshot){
		"cannot be reached":      pdUnreachable,
		"has no leader":          func(s *observation.Snapshot) { s.PD = pd.View{Err: pd.ErrNoLeader} },
		"has not been asked yet": func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("PD has not answered yet")} },
		"is another cluster's":   func(s *observation.Snapshot) { s.PD.ClusterID = "999" },
		"is out of quorum":       func(s *observation.Snapshot) { s.PD.Leader = "" },
	}
}

// pod sets what is seen of a member's pod.
func pod(s *observation.Snapshot, slot int, status metav1.ConditionStatus, reason string) {
	ready := "False"
	if status == metav1.ConditionTrue {
		ready = "True"
	}
	tells(s.Instances[slot], 10*time.Minute, "Ready", ready, reason, "PodReady", string(status), reason, "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
}

// P1: while PD is of no help, no member is stopped whose pod may run, whatever is
// seen of the others: when the kubelets lose the API server, every pod is not Ready
// and PD does not answer, and it works all the same. What is seen not to run is fixed.
func TestAMemberThatPDDoesNotListIsNotStoppedWhilePDDoesNotAnswer(t *testing.T) {
	row, known := v1alpha1.LookupCondition(v1alpha1.ConditionPodReady)
	require.True(t, known)
	type seen struct {
		status metav1.ConditionStatus
		reason string
	}
	all := []seen{{metav1.ConditionTrue, v1alpha1.ReasonPodReady}, {metav1.ConditionUnknown, v1alpha1.ReasonPodPending}}
	for _, reason := range row.Reasons {
		if reason != v1alpha1.ReasonPodReady {
			all = append(all, seen{metav1.ConditionFalse, reason})
		}
	}
	mayRun := func(p seen) bool {
		return p.status != metav1.ConditionFalse || p.reason == v1alpha1.ReasonNodeUnreachable
	}
	checked := 0
	for name, outage := range outages() {
		for _, a := range all {
			for _, b := range all {
				s := scene(t, 2)
				pods := []seen{a, b}
				for slot, p := range pods {
					pod(&s, slot, p.status, p.reason)
					s.PD.Members[slot].Healthy = false
				}
				outage(&s)
				v := voting.New(stored(edited), s)
				for slot, p := range pods {
					require.Equal(t, !mayRun(p), v.IsNotServing(s.Instances[slot]), "PD %s, pods %v, slot %d", name, pods, slot)
				}
				checked++
			}
		}
	}
	fmt.Printf("unseen: %d states checked\n", checked)
}

func TestKubeletsThatLoseTheAPIServerCostNoMember(t *testing.T) {
	lose := func(s *observation.Snapshot) {
		for slot := range 3 {
			pod(s, slot, metav1.ConditionFalse, v1alpha1.ReasonNodeUnreachable)
		}
	}
	for name, outage := range outages() {
		t.Run("while PD "+name, func(t *testing.T) {
			s := scene(t, 3, lose, outage)
			g := stored(edited)
			got := does(mustPlan(t, g, s))
			assert.Empty(t, got.granted)
			assert.Empty(t, got.taken)
			// What was known of the members stands: nothing has been seen of them.
			for _, m := range reportMembers(g, s, mustPlan(t, g, s), clock()) {
				if s.PD.Err != nil {
					assert.True(t, meta.IsStatusConditionTrue(m.Conditions, v1alpha1.ConditionHealthy))
				}
			}
		})
	}
	t.Run("and one that PD calls unhealthy is replaced", func(t *testing.T) {
		s := scene(t, 3, lose, func(s *observation.Snapshot) { s.PD.Members[2].Healthy = false })
		assert.Equal(t, []string{"basic-pd-2"}, does(mustPlan(t, stored(edited), s)).granted)
	})
	t.Run("and pods that are seen not to run are fixed", func(t *testing.T) {
		s := scene(t, 3, pdUnreachable, func(s *observation.Snapshot) {
			for slot := range 3 {
				pod(s, slot, metav1.ConditionFalse, v1alpha1.ReasonContainerCrashing)
			}
		})
		got := does(mustPlan(t, stored(edited), s)).granted
		slices.Sort(got)
		assert.Equal(t, []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"}, got)
	})
}
