package rig_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
)

// moments of a bootstrap at which something is deleted.
var moments = []struct {
	name    string
	reached func(o rig.Objects, group string) bool
}{
	{"as soon as the pods exist", func(o rig.Objects, group string) bool { return len(o.Names("Pod", group+"-")) == 3 }},
	{"as soon as a pod is ready", func(o rig.Objects, group string) bool {
		for _, pod := range o.Names("Pod", group+"-") {
			if c := objects.Condition(o.Get("Pod", pod), "Ready"); c != nil && c.Status == metav1.ConditionTrue {
				return true
			}
		}
		return false
	}},
	{"as soon as it has bootstrapped", func(o rig.Objects, group string) bool {
		c := objects.Condition(o.Get(v1alpha1.KindPDGroup, group), v1alpha1.ConditionBootstrapped)
		return c != nil && c.Status == metav1.ConditionTrue
	}},
}

// P2: at most one cluster ID is born per PDGroup, whatever subset of the pods is
// deleted, with the claims or without, at whatever moment. PD-02, PD-05.
func TestNoDeletionMakesASecondCluster(t *testing.T) {
	t.Parallel()
	for _, what := range []struct {
		name   string
		claims bool
	}{{"pods", false}, {"pods and claims", true}} {
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			// The test itself takes majorities away.
			r := rig.New(t, plane, rig.Options{Tolerate: []model.AlarmKind{model.LostPDMajority}, ReasonDeadline: rig.Timeout})
			r.Start("pdgroup", "instance")
			attempts := 0
			for m, moment := range moments {
				var groups []string
				for subset := 1; subset < 8; subset++ {
					group := fmt.Sprintf("m%d-s%d", m, subset)
					groups = append(groups, group)
					r.Apply(sample.PDGroup(group, 3))
				}
				for subset := 1; subset < 8; subset++ {
					group := groups[subset-1]
					r.Await(rig.Timeout, moment.name, func(o rig.Objects) error {
						if !moment.reached(o, group) {
							return errors.New("not yet")
						}
						return nil
					})
					for slot := range 3 {
						if subset&(1<<slot) == 0 {
							continue
						}
						pod := fmt.Sprintf("%s-%d", group, slot)
						if what.claims {
							r.Watcher.Consent("data-" + pod)
							r.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-" + pod}})
						}
						r.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}})
					}
					attempts++
				}
				for _, group := range groups {
					r.Await(rig.Timeout, "converged, or held back for the lost claim", func(o rig.Objects) error {
						err := o.Converged(v1alpha1.KindPDGroup, group)
						if err != nil && what.claims {
							return held(o, group)
						}
						return err
					})
				}
			}
			born := 0
			for _, db := range r.Databases.List() {
				assert.LessOrEqual(t, db.Bootstraps(), 1, "PD clusters that were bootstrapped for %s", db.Group())
				born += db.Bootstraps()
			}
			fmt.Printf("identity: %d deletions of %s, %d PDGroups bootstrapped, no second cluster ID\n", attempts, what.name, born)
		})
	}
}

// held is content when the group says which claim is lost.
func held(o rig.Objects, group string) error {
	object := o.Get(v1alpha1.KindPDGroup, group)
	for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
		if c := objects.Condition(object, condition); c != nil && c.Reason == v1alpha1.ReasonClaimLost {
			return nil
		}
	}
	return errors.New(objects.Describe(object))
}
