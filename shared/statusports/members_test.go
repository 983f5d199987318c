package statusports_test

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
)

// PD-10: a member of PD that loads ten millions of regions is busy. That it does not answer once
// does not mean that it has loaded them.
func TestPD10AStateHoldsUntilTheProcessSaysAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, err := "loading", error(nil)
		members := statusports.New(t.Context(), func(context.Context, string) (string, error) { return state, err },
			func(said string) bool { return said == "loaded" }, time.Now)
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "pd-0"}}
		i.Status.PodUID, i.Status.PodIP = "first", "10.0.0.1"
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		observe := func() (string, error) {
			members.Observe(types.NamespacedName{Name: "pd"}, []*v1alpha1.Instance{i}, func(*v1alpha1.Instance) *tls.Config { return nil })
			synctest.Wait()
			said, _ := members.Observe(types.NamespacedName{Name: "pd"}, []*v1alpha1.Instance{i}, func(*v1alpha1.Instance) *tls.Config { return nil })
			<-time.After(2 * statusports.AskAgain)
			return said["pd-0"].State, said["pd-0"].Err
		}
		said, problem := observe()
		assert.Equal(t, "loading", said)
		assert.NoError(t, problem)

		state, err = "", errors.New("no answer")
		said, problem = observe()
		assert.Equal(t, "loading", said)
		assert.Equal(t, err, problem)

		i.Status.PodUID = "second"
		said, _ = observe()
		assert.Empty(t, said, "another process has said nothing")

		state, err = "loaded", nil
		said, problem = observe()
		assert.Equal(t, "loaded", said)
		assert.NoError(t, problem)
	})
}
