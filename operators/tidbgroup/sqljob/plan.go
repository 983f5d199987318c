package sqljob

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// maxMessage is how long a message may be, in characters.
	maxMessage = 256
	// overdue is how long after the time of its run a Job may say nothing, lookAgain how
	// soon pods that could not be listed are asked for again, and retry how long after a Job
	// whose pod never ran the next is made.
	overdue   = 6 * time.Minute
	lookAgain = 10 * time.Second
	retry     = 2 * time.Minute
	// lookBeside is how often the pod of a Job that goes on is looked at.
	lookBeside = 30 * time.Second
)

// Seen is what a plan is made from.
type Seen struct {
	// Jobs with the labels of the group's, whatever owns them.
	Jobs []*batchv1.Job
	// Ends are what the pods of Jobs said that have failed, or go on for a while, by the Job's name.
	Ends map[string]End
	// MayBegin says whether one may begin.
	MayBegin verdict.Verdict
	// Image with the program; empty if it is not known.
	Image string
	// Port of the group's Service that MySQL is at.
	Port int32
	// Now is when this was seen.
	Now time.Time
}

// End is how the pod of a Job ended.
type End struct {
	// Message that the program left, and, without one, Reason that Kubernetes gives.
	Message, Reason string
	// Beside is how the program ended although its pod runs on, nil if it does not: see
	// workload.EndBeside.
	Beside *corev1.ContainerStateTerminated
	// Unstarted says that no statement has run: the pod has not started or, of a Job that has
	// failed, never did.
	Unstarted bool
	// NoPod says that Kubernetes has made no pod, which is Unstarted, too.
	NoPod bool
	// Err says why this is not known.
	Err error
}

// Plan is what to do about the SQL of a group.
type Plan struct {
	// Status of each entry of the spec, in its order.
	Status []v1alpha1.SQLStatus
	// Start is the Job to make, nil for none.
	Start *batchv1.Job
	// Stop are Jobs to delete: those whose end stands in status, and those that the
	// spec does not ask for any more.
	Stop []*batchv1.Job
	// Wake is when to look again if nothing wakes the group up; 0 is never.
	Wake time.Duration
}

// MakePlan decides what to do.
func MakePlan(g *v1alpha1.TiDBGroup, seen Seen) Plan {
	m := maker{g: g, seen: seen}
	for _, job := range seen.Jobs {
		if metav1.IsControlledBy(job, g) && !m.isWanted(job.Name) {
			m.drop(job)
		}
		if metav1.IsControlledBy(job, g) && !workload.HasJobEnded(job) {
			m.busy = job.Name
		}
	}
	first := ""
	for i := range g.Spec.SQL {
		status := m.run(&g.Spec.SQL[i], first)
		if first == "" && status.State != v1alpha1.SQLSucceeded {
			first = fmt.Sprintf("run %s comes first, which is %s", status.Name, status.State)
		}
		m.plan.Status = append(m.plan.Status, status)
	}
	return m.plan
}

// WithError has the entry of the Job that could not be made say so.
func (p Plan) WithError(err error) Plan {
	if p.Start == nil || err == nil {
		return p
	}
	p.Status = slices.Clone(p.Status)
	for i := range p.Status {
		if p.Status[i].Name == p.Start.Labels[v1alpha1.LabelSQL] {
			p.Status[i].Message = truncateMessage("its Job cannot be made: "+err.Error(), "")
		}
	}
	return p
}

type maker struct {
	g    *v1alpha1.TiDBGroup
	seen Seen
	plan Plan
	// busy is a Job of the group that has not ended.
	busy string
}

// isWanted reports whether a Job is of an entry's present revision.
func (m *maker) isWanted(name string) bool {
	return slices.ContainsFunc(m.g.Spec.SQL, func(r v1alpha1.SQLRun) bool { return jobName(m.g.Name, &r) == name })
}

// drop has a Job deleted, unless it is already or nothing is to be done.
func (m *maker) drop(job *batchv1.Job) {
	if job.DeletionTimestamp == nil && m.g.DeletionTimestamp == nil && !m.g.Spec.Paused {
		m.plan.Stop = append(m.plan.Stop, job)
	}
}

// run decides about one entry. first says what has to come before it, empty if nothing.
func (m *maker) run(r *v1alpha1.SQLRun, first string) v1alpha1.SQLStatus {
	status := v1alpha1.SQLStatus{Name: r.Name, Revision: r.Revision, State: v1alpha1.SQLWaiting}
	if known := findStatus(m.g, r); known != nil {
		status = *known.DeepCopy()
	}
	name := jobName(m.g.Name, r)
	job := m.job(name)
	switch {
	case IsFinal(status.State):
		// It has run. The Job of one that failed keeps its log until the entry changes.
		if status.State == v1alpha1.SQLSucceeded && job != nil && metav1.IsControlledBy(job, m.g) {
			m.drop(job)
		}
	case job != nil && !metav1.IsControlledBy(job, m.g):
		return waitingStatus(status, fmt.Sprintf("Job %s belongs to another owner: delete it: kubectl -n %s delete job %s", name, m.g.Namespace, name))
	case job != nil && job.DeletionTimestamp != nil && status.State == v1alpha1.SQLWaiting:
		return waitingStatus(status, "Job "+name+" is being deleted")
	case job != nil:
		return m.reportJob(status, r, job)
	case status.State == v1alpha1.SQLRunning:
		status.State, status.CompletionTime = v1alpha1.SQLFailed, m.now()
		status.Message = m.failureMessage(r, "Job "+name+" is gone, and how it ended is not known")
	default:
		return m.tryStart(status, r, first)
	}
	return status
}

// tryStart is an entry that has not begun, and may do so now.
func (m *maker) tryStart(status v1alpha1.SQLStatus, r *v1alpha1.SQLRun, first string) v1alpha1.SQLStatus {
	switch {
	case !m.seen.MayBegin.IsAllowed():
		return waitingStatus(status, m.seen.MayBegin.Reason())
	case first != "":
		return waitingStatus(status, first)
	case m.busy != "":
		return waitingStatus(status, "Job "+m.busy+" has not ended")
	case m.seen.Image == "":
		return waitingStatus(status, "the tidbgroup operator does not know the image that it runs from, which has the program: start it with --image")
	}
	m.plan.Start = renderJob(m.g, r, m.seen.Image, m.seen.Port)
	m.busy = m.plan.Start.Name
	return waitingStatus(status, "Job "+m.plan.Start.Name+" is being made")
}

// reportJob is an entry whose Job is there.
func (m *maker) reportJob(status v1alpha1.SQLStatus, r *v1alpha1.SQLRun, job *batchv1.Job) v1alpha1.SQLStatus {
	begun, before := job.CreationTimestamp, status.State
	status.State, status.StartTime, status.CompletionTime = v1alpha1.SQLRunning, &begun, nil
	status.Message = fmt.Sprintf("kubectl -n %s logs job/%s", m.g.Namespace, job.Name)
	complete, failed := workload.JobCondition(job, batchv1.JobComplete), workload.JobCondition(job, batchv1.JobFailed)
	end := m.seen.Ends[job.Name]
	switch {
	case complete != nil:
		status.State, status.CompletionTime, status.Message = v1alpha1.SQLSucceeded, &complete.LastTransitionTime, ""
	case failed != nil && end.Err != nil:
		status.Message = truncateMessage("it has failed, and how is not known yet: "+end.Err.Error(), "")
		m.wake(lookAgain)
	case failed != nil && end.Unstarted:
		left := failed.LastTransitionTime.Add(retry).Sub(m.seen.Now)
		if left <= 0 && before == v1alpha1.SQLWaiting {
			m.drop(job) // now that status says that it did not run
		}
		m.wake(cmp.Or(max(left, 0), retry))
		return waitingStatus(status, m.describeFailure(job, failed, end)+"; no statement ran, and it is tried again")
	case failed != nil:
		status.State, status.CompletionTime = v1alpha1.SQLFailed, &failed.LastTransitionTime
		status.Message = m.failureMessage(r, m.describeFailure(job, failed, end))
	case end.Beside != nil && end.Beside.ExitCode == 0:
		status.State, status.CompletionTime, status.Message = v1alpha1.SQLSucceeded, &end.Beside.FinishedAt, ""
	case end.Beside != nil:
		status.State, status.CompletionTime = v1alpha1.SQLFailed, &end.Beside.FinishedAt
		status.Message = m.failureMessage(r, m.describeFailure(job, &batchv1.JobCondition{}, end))
	case end.NoPod:
		status.Message = truncateMessage(fmt.Sprintf("it has no pod: a quota, a LimitRange or a policy refuses it, or Kubernetes' controller of Jobs does not run: kubectl -n %s describe job %s", m.g.Namespace, job.Name), "")
		m.wake(lookBeside)
	case end.Unstarted:
		status.Message = truncateMessage(fmt.Sprintf("its pod has not started: kubectl -n %s describe pods -l job-name=%s", m.g.Namespace, job.Name), "")
		m.wake(lookBeside)
	default:
		until := begun.Add(time.Duration(timeoutSeconds(r))*time.Second + overdue)
		if left := until.Sub(m.seen.Now); left > 0 {
			m.wake(min(left, lookBeside))
			break
		}
		status.Message = truncateMessage(fmt.Sprintf("Job %s should have ended by itself: does Kubernetes' controller of Jobs run? kubectl -n %s describe job %s", job.Name, m.g.Namespace, job.Name), "")
	}
	return status
}

// describeFailure says what a failed Job failed of: in the program's words if it had any.
func (m *maker) describeFailure(job *batchv1.Job, failed *batchv1.JobCondition, end End) string {
	switch {
	case end.Message != "":
		return end.Message
	case end.Reason != "":
		return "its pod ended without a message: " + end.Reason
	case failed.Reason == batchv1.JobReasonDeadlineExceeded:
		return fmt.Sprintf("its pod did not run in time: kubectl -n %s describe job %s", m.g.Namespace, job.Name)
	}
	if end.Unstarted {
		return "its pod could not start"
	}
	return "its pod is gone, and how it ended is not known"
}

// failureMessage is the message of an entry that has failed: why, and how to run it again.
func (m *maker) failureMessage(r *v1alpha1.SQLRun, why string) string {
	return truncateMessage(why, "; to run it again raise "+origin.OfGroup(m.g).DescribeField(fmt.Sprintf("sql[%s].revision", r.Name)))
}

func (m *maker) job(name string) *batchv1.Job {
	at := slices.IndexFunc(m.seen.Jobs, func(j *batchv1.Job) bool { return j.Name == name })
	if at < 0 {
		return nil
	}
	return m.seen.Jobs[at]
}

func (m *maker) now() *metav1.Time { return &metav1.Time{Time: m.seen.Now.UTC().Truncate(time.Second)} }

func (m *maker) wake(after time.Duration) {
	if m.plan.Wake == 0 || after < m.plan.Wake {
		m.plan.Wake = after
	}
}

func waitingStatus(status v1alpha1.SQLStatus, why string) v1alpha1.SQLStatus {
	return v1alpha1.SQLStatus{Name: status.Name, Revision: status.Revision, State: v1alpha1.SQLWaiting, Message: truncateMessage(why, "")}
}

// IsFinal reports whether a run has ended.
func IsFinal(state v1alpha1.SQLState) bool {
	return state == v1alpha1.SQLSucceeded || state == v1alpha1.SQLFailed
}

// findStatus returns what status says of an entry in its revision, nil for nothing.
func findStatus(g *v1alpha1.TiDBGroup, r *v1alpha1.SQLRun) *v1alpha1.SQLStatus {
	at := slices.IndexFunc(g.Status.SQL, func(s v1alpha1.SQLStatus) bool { return s.Name == r.Name && s.Revision == r.Revision })
	if at < 0 {
		return nil
	}
	return &g.Status.SQL[at]
}

// ListUnreported returns the Jobs that have failed without that standing in status, and those that go
// on for a while: of these the pods are to be asked.
func ListUnreported(g *v1alpha1.TiDBGroup, jobs []*batchv1.Job, now time.Time) []*batchv1.Job {
	var out []*batchv1.Job
	for i := range g.Spec.SQL {
		r := &g.Spec.SQL[i]
		known := findStatus(g, r)
		recorded := known != nil && IsFinal(known.State)
		for _, job := range jobs {
			asked := workload.JobCondition(job, batchv1.JobFailed) != nil || !workload.HasJobEnded(job) && now.Sub(job.CreationTimestamp.Time) >= lookBeside
			if asked && !recorded && job.Name == jobName(g.Name, r) && metav1.IsControlledBy(job, g) {
				out = append(out, job)
			}
		}
	}
	return out
}

// LacksJob reports whether an entry that runs should have a Job that is not among those that
// were seen: a Job that is gone ends the entry for good, so that it has to be looked for where
// all are.
func LacksJob(g *v1alpha1.TiDBGroup, jobs []*batchv1.Job) bool {
	return slices.ContainsFunc(g.Spec.SQL, func(r v1alpha1.SQLRun) bool {
		known := findStatus(g, &r)
		return known != nil && known.State == v1alpha1.SQLRunning && !slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return job.Name == jobName(g.Name, &r) })
	})
}

// EndOf returns how the pods of a Job ended: the first that says anything. One that Kubernetes
// replaces counts only if no other says how, and the Job has failed.
func EndOf(job *batchv1.Job, pods []corev1.Pod) End {
	if hasHadNoPod(job, pods) {
		return End{NoPod: true, Unstarted: true}
	}
	if job.Spec.PodFailurePolicy == nil {
		return readEnd(job, pods)
	}
	out := readEnd(job, slices.DeleteFunc(slices.Clone(pods), isDisrupted))
	if out == (End{}) && workload.JobCondition(job, batchv1.JobFailed) != nil {
		return readEnd(job, pods)
	}
	return out
}

// hasHadNoPod reports whether a Job has no pod among some and, by what Kubernetes has counted, never had one: one
// that failed otherwise than by its deadline had.
func hasHadNoPod(job *batchv1.Job, pods []corev1.Pod) bool {
	s, failed := job.Status, workload.JobCondition(job, batchv1.JobFailed)
	ended := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	return s.Active+s.Succeeded+s.Failed == 0 && len(ended.Succeeded)+len(ended.Failed) == 0 && (failed == nil || failed.Reason == batchv1.JobReasonDeadlineExceeded) &&
		!slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return metav1.IsControlledBy(&pod, job) })
}

// isDisrupted reports whether Kubernetes says that it ended a pod: see failurePolicy.
func isDisrupted(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// readEnd returns what the first of some pods says that says anything.
func readEnd(job *batchv1.Job, pods []corev1.Pod) End {
	out, failed := End{}, workload.JobCondition(job, batchv1.JobFailed)
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, job) })
	out.Unstarted = len(pods) > 0 && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return failed == nil && pod.Status.Phase != corev1.PodPending || failed != nil && workload.MayHaveStarted(&pod, failed.LastTransitionTime)
	})
	for i := range pods {
		pod := &pods[i]
		for _, c := range pod.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && c.Name == Container {
				if beside := workload.EndBeside(pod, Container); beside != nil {
					out.Beside = beside
				}
				if words := oneLine(t.Message); words != "" {
					return End{Message: words, Beside: out.Beside}
				}
				out.Reason = fmt.Sprintf("%s, exit code %d", oneLine(t.Reason), t.ExitCode)
			}
		}
		if out.Reason == "" {
			out.Reason = oneLine(pod.Status.Reason)
		}
	}
	return out
}

// truncateMessage returns a text that goes on with a tail, in as many characters as a message may
// have: it is the text that is cut.
func truncateMessage(text, tail string) string {
	room := maxMessage - len([]rune(tail))
	runes := []rune(oneLine(text))
	if len(runes) > room {
		runes = append(runes[:max(0, room-1)], '…')
	}
	out := []rune(string(runes) + tail)
	return string(out[:min(len(out), maxMessage)])
}

// oneLine makes of what a pod says one line of printable characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}
