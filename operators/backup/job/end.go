package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// lag is how much later than the end of a Job that of its pod may be seen.
const lag = 10 * time.Second

// born is how soon after a Job Kubernetes has made its pod.
const born = 5 * time.Second

// end is how a Job ended.
type end struct {
	complete, failed bool
	at               metav1.Time
	// beside says that the program has ended, and that its pod and its Job run on.
	beside bool
	// unstarted says that the container with the program has never run.
	unstarted bool
	// result that the pod has left; told says that there is one. words are Kubernetes'
	// without it.
	result result.Result
	told   bool
	words  string
}

// reason is that of a failure.
func (e end) reason() string {
	info, _ := v1alpha1.LookupCondition(v1alpha1.ConditionStalled)
	if e.told && info.Has(e.result.Reason) {
		return e.result.Reason
	}
	return v1alpha1.ReasonRunFailed
}

// message says what failed.
func (e end) message() string {
	if e.told && e.result.Message != "" {
		return e.result.Message
	}
	return e.words
}

// readEnd reads how a Job ended.
func (p *planner) readEnd(job *batchv1.Job) end {
	out := end{words: "its pod is gone, and how it ended is not known"}
	if c := workload.JobCondition(job, batchv1.JobComplete); c != nil {
		out.complete, out.at = true, c.LastTransitionTime
	}
	if c := workload.JobCondition(job, batchv1.JobFailed); c != nil {
		out.failed, out.at = true, c.LastTransitionTime
	}
	if t := p.endBeside(job); t != nil && !out.complete && !out.failed {
		out.complete, out.failed, out.at, out.beside = t.ExitCode == 0, t.ExitCode != 0, t.FinishedAt, true
	}
	pods := p.podsOf(job)
	out.unstarted = len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return workload.MayHaveStarted(pod, out.at) })
	for _, pod := range pods {
		if pod.Status.Reason != "" {
			out.words = "its pod ended without a message: " + result.OneLine(pod.Status.Reason)
		}
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			t := c.State.Terminated
			if t == nil {
				continue
			}
			if t.ExitCode != 0 {
				out.words = fmt.Sprintf("container %s of its pod ended without a message: %s, exit code %d", c.Name, result.OneLine(t.Reason), t.ExitCode)
			}
			if c.Name == jobtemplate.Container {
				out.result, out.told = result.Read(t.Message)
			}
		}
	}
	return out
}

// podsOf are the pods of a Job.
func (p *planner) podsOf(job *batchv1.Job) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(p.seen.Pods), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, job) })
}

// observeJob is a run whose Job is there.
func (p *planner) observeJob(job *batchv1.Job) {
	s := &p.plan.Status
	e := p.readEnd(job)
	switch {
	case job.DeletionTimestamp != nil:
		p.plan.Outcome = p.waitForStop("Job " + job.Name + " is being deleted")
		return
	case !e.complete && !e.failed:
		s.State, s.StartTime, s.CompletionTime = v1alpha1.RunRunning, &job.CreationTimestamp, nil
		p.reportProgress()
		p.plan.Outcome = p.describeWork(job)
		return
	case !e.told && p.seen.Now.Sub(e.at.Time) < lag:
		p.plan.Outcome = step.Wait("pods", lag, v1alpha1.ReasonJobRunning, "Job "+job.Name+" has ended: waiting for its pod's result")
		return
	}
	s.StartTime, s.CompletionTime = &job.CreationTimestamp, &e.at
	p.endProgress()
	lost := !e.told && p.run.RunKind() == v1alpha1.KindBackup && s.Attempts < maxLost
	switch {
	case e.complete:
		s.State, s.Bytes, s.TSO = v1alpha1.RunComplete, e.result.Bytes, e.result.TSO
		if e.told {
			s.Size = humanize.IBytes(uint64(max(0, e.result.Bytes)))
		}
		p.plan.Outcome = step.Done()
	case e.told && !e.result.Begun || lost || e.unstarted:
		s.State = v1alpha1.RunWaiting
		after := retryAfter(s.Attempts)
		p.plan.Outcome = p.stallRun(e.reason(), fmt.Sprintf("%s; it is tried again after %s", strings.TrimSuffix(e.message(), "."), e.at.Add(after).UTC().Format(time.RFC3339)))
		p.scheduleRetry(job, e.at, after)
	case e.beside: // the Job is deleted, and its log with it
		p.failRun(e.reason(), strings.TrimSuffix(e.message(), "."))
	default:
		p.failRun(e.reason(), fmt.Sprintf("%s; its log: kubectl -n %s logs job/%s", e.message(), job.Namespace, job.Name))
	}
}

// reportProgress says how far a run is. Its last report stands until the next.
func (p *planner) reportProgress() {
	s, r := &p.plan.Status, p.seen.Progress
	if r == nil {
		return
	}
	s.Progress, s.EstimatedCompletionTime = r.Text(), nil
	if r.Completion != nil {
		s.EstimatedCompletionTime = &metav1.Time{Time: r.Completion.UTC().Truncate(time.Second)}
	}
}

// endProgress has status say nothing more of how far a run is that has ended.
func (p *planner) endProgress() {
	p.plan.Status.Progress, p.plan.Status.EstimatedCompletionTime = "", nil
}

// ProgressAddress returns the address of the pod of a run that reports how far it is; empty if none does.
func ProgressAddress(run v1alpha1.Run, seen Seen) string {
	if run.RunKind() == v1alpha1.KindLogBackup || run.GetDeletionTimestamp() != nil || run.GetRunStatus().HasEnded() {
		return ""
	}
	for _, pod := range seen.Pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelComponent] != jobtemplate.ComponentClean {
			return pod.Status.PodIP
		}
	}
	return ""
}

// failRun has a run end. To run it again is to create it again.
func (p *planner) failRun(reason, message string) {
	kind := p.run.RunKind()
	p.plan.Status.State = v1alpha1.RunFailed
	p.endProgress()
	if p.plan.Status.CompletionTime == nil {
		p.plan.Status.CompletionTime = &metav1.Time{Time: p.seen.Now.UTC().Truncate(time.Second)}
	}
	p.plan.Outcome = step.Stall(reason, fmt.Sprintf("%s; to run it again delete it (kubectl -n %s delete %s %s) and recreate it", message, p.run.GetNamespace(), strings.ToLower(kind), p.run.GetName()))
}

// scheduleRetry has a Job deleted when it is time to make the next one.
func (p *planner) scheduleRetry(job *batchv1.Job, ended metav1.Time, after time.Duration) {
	left := ended.Add(after).Sub(p.seen.Now)
	if left <= 0 {
		p.deleteJob(job)
		return
	}
	p.plan.Outcome.After = left
}

// retryAfter is how long after an attempt the next one is made.
func retryAfter(attempts int32) time.Duration {
	out := firstRetry
	for ; attempts > 1 && out < lastRetry; attempts-- {
		out *= 2
	}
	return min(out, lastRetry)
}

// describeWork says of a Job that has not ended what it does, or what keeps its pod from it.
func (p *planner) describeWork(job *batchv1.Job) step.Outcome {
	if reason, why := p.describeBlocked(job); why != "" {
		return p.waitForObjects(reason, why)
	}
	o := p.waitForObjects(v1alpha1.ReasonJobRunning, fmt.Sprintf("Job %s runs: kubectl -n %s logs job/%s", job.Name, job.Namespace, job.Name))
	if ProgressAddress(p.run, p.seen) != "" {
		o.After = progress.Every
	}
	return o
}

// describeBlocked says what keeps the pod of a Job from running; empty if nothing does.
func (p *planner) describeBlocked(job *batchv1.Job) (reason, why string) {
	if p.lacksPod(job) {
		return v1alpha1.ReasonPodMissing, fmt.Sprintf("Job %s has no pod: a quota, a policy or a missing serviceAccountName refuses it, or Kubernetes' controller of Jobs does not run; its Events say which: kubectl -n %s describe job %s", job.Name, job.Namespace, job.Name)
	}
	if why := p.describeOverdue(); why != "" {
		return v1alpha1.ReasonPodTerminating, why
	}
	for _, pod := range p.podsOf(job) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return v1alpha1.ReasonPodUnschedulable, "pod " + pod.Name + " finds no node: " + result.OneLine(c.Message)
			}
		}
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			w := c.State.Waiting
			if w == nil {
				continue
			}
			switch reason := w.Reason; {
			case workload.IsPullFailure(reason), reason == "InvalidImageName", reason == "ErrImageNeverPull":
				return v1alpha1.ReasonImagePullFailed, fmt.Sprintf("image %s of container %s cannot be pulled: correct the name, or the registry: %s", c.Image, c.Name, w.Reason)
			case slices.Contains([]string{"CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "PreStartHookError"}, reason):
				return v1alpha1.ReasonContainerConfigError, fmt.Sprintf("container %s cannot be made: %s", c.Name, result.OneLine(w.Message))
			}
		}
	}
	return "", ""
}

// describeOverdue names a pod that is there although its grace period has passed, as on a node that was
// cut off; empty if none is. Until it is gone its Job neither ends nor goes.
func (p *planner) describeOverdue() string {
	for _, pod := range p.seen.Pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || ended {
			continue
		}
		if left := pod.DeletionTimestamp.Sub(p.seen.Now); left > 0 {
			p.plan.Wake = left
			continue
		}
		return fmt.Sprintf("pod %s is being stopped on node %s, past its grace period: does the node answer? kubectl get node %s; if it is gone for good: kubectl delete node %s", pod.Name, pod.Spec.NodeName, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return ""
}

// waitForStop waits for a Job that is being deleted.
func (p *planner) waitForStop(message string) step.Outcome {
	if why := p.describeOverdue(); why != "" {
		return p.waitForObjects(v1alpha1.ReasonPodTerminating, message+": "+why)
	}
	return p.waitForObjects(v1alpha1.ReasonDeleting, message)
}

// lacksPod reports whether a Job should have a pod by now, and has had none.
func (p *planner) lacksPod(job *batchv1.Job) bool {
	s := job.Status
	if s.Active+s.Succeeded+s.Failed > 0 || len(p.podsOf(job)) > 0 {
		return false
	}
	left := job.CreationTimestamp.Add(born).Sub(p.seen.Now)
	if left > 0 {
		p.plan.Wake = left
	}
	return left <= 0
}
