package controller

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// turnedAwayPause is how long after its creation a pod that its node turned away
// is recreated: a kubelet that is short of something says so to the scheduler
// every 10 s (nodeStatusUpdateFrequency), and gets every new pod until then.
const turnedAwayPause = 10 * time.Second

// mayStart says why the pod may not be made yet; Done if it may. It needs every claim, and
// every claim recorded in status.
func mayStart(s *observation.Snapshot) step.Outcome {
	var all []step.Outcome
	for _, v := range s.Volumes {
		all = append(all, volumeclaim.Obstacle(s, v))
		switch {
		case v.Claim == nil:
			all = append(all, planning.Wait("claim", v1alpha1.ReasonCreating, "claim %s is being created", v.Name))
		case volumeclaim.IsReplaceable(s, v):
			all = append(all, planning.Wait("claim", v1alpha1.ReasonCreating, "claim %s, which has no volume yet, is recreated as the spec says", v.Name))
		case v.Recorded != v.Claim.UID:
			all = append(all, planning.Wait("instance", v1alpha1.ReasonCreating, "claim %s is being recorded for pod %s", v.Name, s.Instance.Name))
		}
	}
	return step.Worst(all...)
}

// mayRestart says why the pod may not be stopped to be recreated; Done if it may. A pod that
// could not be started again is left alone.
func mayRestart(s *observation.Snapshot) step.Outcome {
	var all []step.Outcome
	for _, v := range s.Volumes {
		all = append(all, volumeclaim.Obstacle(s, v))
	}
	return step.Worst(all...)
}

// mayRenew says why a pod that has ended may not be deleted and recreated yet; Done if it
// may. One that a node turned away before any container of it was
// created would be turned away again at once, as often as it is made.
func mayRenew(s *observation.Snapshot) step.Outcome {
	left := turnedAwayPause - s.Now.Sub(s.Pod.CreationTimestamp.Time)
	started := len(s.Pod.Status.ContainerStatuses)+len(s.Pod.Status.InitContainerStatuses) > 0
	if started || left <= 0 || left > turnedAwayPause { // more than the pause: our clock and the API server's differ
		return step.Done()
	}
	o := podstate.WaitForRecreation(s)
	o.After = left // nothing reports that it is over
	return o
}

// maySuspend says why the pod may not be stopped with its claims kept; Done if it may. A
// claim that is being deleted would go with the pod.
func maySuspend(s *observation.Snapshot) step.Outcome {
	for _, v := range s.Volumes {
		if v.Claim != nil && v.Claim.DeletionTimestamp != nil {
			return volumeclaim.Obstacle(s, v)
		}
	}
	return step.Done()
}
