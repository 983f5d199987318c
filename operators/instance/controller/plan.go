package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/operators/instance/podtemplate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// makePlan decides what to do next.
func makePlan(s *observation.Snapshot) *planning.Plan {
	instance := s.Instance
	p := &planning.Plan{Outcome: step.Done()}
	deleting := instance.DeletionTimestamp != nil
	switch {
	case s.Err != nil:
		p.Outcome = step.Fail(v1alpha1.ReasonRequestFailed, s.Err)
		return p
	case deleting && !observation.MustFinalize(s):
		// Nothing of ours is left, or was ever made; others hold the Instance.
		p.Outcome = planning.Wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted and waits for finalizers of others: %s", strings.Join(instance.Finalizers, ", "))
		p.Outcome.After = planning.Recheck // no watch reports when the group goes
		return p
	case deleting && !observation.IsDraining(s):
		planDeletion(s, p)
		return p
	}
	planRun(s, p)
	if deleting && p.Outcome.Kind == step.KindDone {
		p.Outcome = planning.Wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted: the operator of %s %s first makes its member safe to stop (see condition Drained), then removes finalizer %s",
			instance.Spec.Group.Kind, instance.Spec.Group.Name, v1alpha1.FinalizerMember)
		p.Outcome.After = planning.Recheck // no watch reports when the group goes
	}
	if instance.Spec.Paused {
		*p = planning.Plan{Outcome: p.Outcome}
	}
	return p
}

// planRun plans for an Instance that is to run or to be suspended.
func planRun(s *observation.Snapshot, p *planning.Plan) {
	instance := s.Instance
	if s.TemplateErr != nil {
		p.Outcome = planning.Stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v: correct it; nothing has been touched", s.TemplateErr)
		return
	}
	p.AddFinalizer = !slices.Contains(instance.Finalizers, v1alpha1.FinalizerInstance)
	if !instance.Spec.Suspended {
		for at := range s.Volumes {
			volumeclaim.Plan(s, p, at)
		}
	}
	planPod(s, p)
}

// planPod creates, changes in place, replaces or stops the pod.
func planPod(s *observation.Snapshot, p *planning.Plan) {
	instance, pod := s.Instance, s.Pod
	if pod == nil {
		planNewPod(s, p)
		return
	}
	if podstate.OwnerOf(instance, pod) == podstate.ForeignPod {
		p.Outcome = planning.Stall(v1alpha1.ReasonPodOfAnotherOwner, "pod %s exists and belongs to another owner and is not touched: delete or rename it: kubectl describe pod %s -n %s", pod.Name, pod.Name, pod.Namespace)
		return
	}
	switch {
	case pod.DeletionTimestamp != nil:
		p.Outcome = podstate.WaitForStop(s, pod)
	case instance.Spec.Suspended:
		if p.Outcome = maySuspend(s); p.Outcome.Kind == step.KindDone {
			p.DeletePod = &planning.PodDeletion{Pod: pod, Why: "the Instance is suspended"}
			p.Outcome = podstate.WaitForStop(s, pod)
		}
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		if p.Outcome = mayRenew(s); p.Outcome.Kind == step.KindDone {
			p.DeletePod = &planning.PodDeletion{Pod: pod, Why: "it has ended: " + podstate.DescribeEnd(pod)}
			p.Outcome = podstate.WaitForRecreation(s)
		}
	default:
		planChange(s, p)
	}
}

// planNewPod makes the pod if there is to be one and its claims allow.
func planNewPod(s *observation.Snapshot, p *planning.Plan) {
	if s.Instance.Spec.Suspended {
		return
	}
	if s.Instance.DeletionTimestamp != nil && slices.Contains(s.Instance.Finalizers, metav1.FinalizerDeleteDependents) {
		return // deleted with --cascade=foreground: the garbage collector would delete it at once
	}
	if p.Outcome = mayStart(s); p.Outcome.Kind != step.KindDone {
		return
	}
	pod, err := podtemplate.Render(s.Instance, s.Template)
	if err != nil {
		p.Outcome = planning.Stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v", err)
		return
	}
	p.CreatePod = pod
}

// planChange compares the running pod with the spec. A template that changes under the
// same revision is equivalent: the pod stays, and records the new template.
func planChange(s *observation.Snapshot, p *planning.Plan) {
	instance, pod := s.Instance, s.Pod
	change := podtemplate.Difference(instance, pod, s.Template)
	if pod.UID == instance.Spec.StopPod && !change.Restart {
		change = revision.Change{Text: fmt.Sprintf("a request of %s %s (its Events say why)", instance.Spec.Group.Kind, instance.Spec.Group.Name), Restart: true}
	}
	next, err := podtemplate.Render(instance, s.Template)
	if err != nil {
		p.Outcome = planning.Stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v", err)
		return
	}
	if change.Restart {
		if block := mayRestart(s); block.Kind != step.KindDone {
			block.Message = fmt.Sprintf("restart for %s is postponed: %s", change.Text, block.Message)
			p.Outcome = block
			return
		}
		p.DeletePod = &planning.PodDeletion{Pod: pod, Why: "restart for " + change.Text, Next: next}
		p.Outcome = planning.Wait("pod", v1alpha1.ReasonRestartPending, "pod %s is restarted for %s", pod.Name, change.Text)
		return
	}
	if body := podtemplate.BuildPatch(instance, pod, next, s.Template); body != nil {
		p.PatchPod = &planning.PodPatch{Pod: pod, Body: body, Why: "labels and annotations follow the spec"}
	}
}

// planDeletion stops the pod, then applies the claim retention, then lets the
// Instance go. Nothing of the spec but the retention counts here, so that it
// ends in every state.
func planDeletion(s *observation.Snapshot, p *planning.Plan) {
	instance, pod := s.Instance, s.Pod
	if slices.Contains(instance.Finalizers, metav1.FinalizerOrphanDependents) {
		// Deleted with --cascade=orphan: the pod is to stay. The garbage
		// collector takes our reference from it first.
		p.Outcome = planning.Wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted without its pod: Kubernetes' garbage collector must release pod %s first", instance.Name)
		return
	}
	owner := podstate.ForeignPod
	if pod != nil {
		owner = podstate.OwnerOf(instance, pod)
	}
	if owner == podstate.OwnPod {
		p.Outcome = podstate.WaitForStop(s, pod)
		if pod.DeletionTimestamp == nil {
			p.DeletePod = &planning.PodDeletion{Pod: pod, Why: "the Instance is being deleted"}
		}
		return
	}
	p.RemoveFinalizer = true
	if owner == podstate.OrphanPod {
		return // the pod runs on, so its claims stay as they are
	}
	for _, claim := range volumeclaim.List(s) {
		volumeclaim.PlanRetention(s, claim, p)
	}
}
