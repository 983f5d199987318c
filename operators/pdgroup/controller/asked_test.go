package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
)

// PD-10, P9: members are asked whether they have loaded the regions while one of them is disrupted, and
// at no other time.
func TestPD10MembersAreAskedWhileOneIsDisrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := &steps{members: statusports.New(t.Context(), func(context.Context, string) (string, error) {
			asked++
			return statusport.Loading, nil
		}, statusport.IsFinal, time.Now)}
		g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "basic-pd"}}
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "basic-pd-0", UID: "a"}}
		i.Spec.Group.Kind, i.Spec.Group.Name = v1alpha1.KindPDGroup, g.Name
		i.Status.PodIP = "10.0.0.1"
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue}}
		s := observation.Snapshot{Instances: []*v1alpha1.Instance{i}}
		observe := func() observation.Snapshot {
			now := s
			r.askMembers(g, &now)
			synctest.Wait()
			return now
		}
		assert.False(t, observe().StatusPortsPending)
		assert.Zero(t, asked)

		s.Lease = lease.NewState(lease.NewHolder(i), time.Now(), 0)
		assert.True(t, observe().StatusPortsPending)
		now := observe()
		assert.False(t, now.StatusPortsPending)
		assert.Equal(t, statusport.Loading, now.StatusPorts[i.Name].State)
		assert.Equal(t, 1, asked)

		s.Lease = lease.State{}
		assert.Empty(t, observe().StatusPorts)
		assert.Equal(t, 1, asked)
	})
}
