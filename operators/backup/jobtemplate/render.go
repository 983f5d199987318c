package jobtemplate

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// What the parts of a Job are called, and where they lie in its pod.
const (
	// Container of the pod that runs the tool.
	Container = "run"
	// Components that Jobs and pods are labelled with.
	ComponentBackup  = "backup"
	ComponentRestore = "restore"
	ComponentClean   = "backup-clean"
	componentLog     = "backup-log"

	program    = "backup-runner"
	programDir = "/tidb-groups"
	scratchDir = "/scratch"
	volumeDir  = "/backups"
	// KeysDir is where the keys of a bucket are mounted.
	KeysDir        = "/etc/backup-storage"
	authorityDir   = "/etc/backup-storage-ca"
	passwordDir    = "/etc/tidb-password" //nolint:gosec // where it is mounted
	certificateDir = "/etc/tidb-tls"
	clusterDir     = "/etc/cluster-tls"
	password       = "password"
	root           = "root"
	// user is who runs the pod, and who owns what it writes to a volume.
	user = 65532
	// graceSeconds let a backup that is stopped remove what it has written.
	graceSeconds = 60
	// logDeadline is how many seconds a Job of a LogBackup may take: truncation deletes file by
	// file.
	logDeadline = 6 * 3600
	// uidLength is how much of its UID makes a task's name one of its own.
	uidLength = 8
	// cleanTTL is after how long Kubernetes deletes a Job that nothing waits for any more.
	cleanTTL = 3600
)

// tool is what a kind of Job runs.
type tool struct{ component, verb, image, path string }

func toolOf(kind string, physical bool) tool {
	out := tool{ComponentBackup, "backup", "pingcap/dumpling", "/dumpling"}
	if kind == v1alpha1.KindRestore {
		out = tool{ComponentRestore, "restore", "pingcap/tidb-lightning", "/tidb-lightning"}
	}
	if kind == v1alpha1.KindLogBackup {
		out = tool{componentLog, "log", "pingcap/br", "/br"}
	}
	if physical {
		out.image, out.path = "pingcap/br", "/br"
	}
	return out
}

// ComponentOf is what the Jobs of a kind are labelled with, but for those that delete files.
func ComponentOf(kind string) string { return toolOf(kind, false).component }

// RunLabels are those of a run's Jobs and pods, but for the component.
func RunLabels(run v1alpha1.Run) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb", v1alpha1.LabelRun: string(run.GetUID())}
}

// Name returns the name of a Job.
func Name(run v1alpha1.Run, component string, attempt int32) string {
	switch {
	case component == ComponentClean && run.RunKind() == v1alpha1.KindLogBackup:
		component = "logclean"
	case component == ComponentClean:
		component = "clean"
	case component == componentLog:
		component = "log"
	}
	return fmt.Sprintf("%s-%s-%d", run.GetName(), component, attempt)
}

// Render renders the Job of a run.
func Render(run v1alpha1.Run, f Files, g *v1alpha1.TiDBGroup, image string, attempt int32) *batchv1.Job {
	t := toolOf(run.RunKind(), f.Physical)
	m := newMaker(run, t.component, attempt)
	m.job.Labels[v1alpha1.LabelCluster], m.job.Spec.Template.Labels[v1alpha1.LabelCluster] = g.PDGroupName(), g.PDGroupName()
	m.addTool(image, t, g, run.GetRunPod())
	m.mountStorage(f, run.RunKind() == v1alpha1.KindRestore)
	m.setLogin(run.GetLogin(), g)
	m.main.Args = append(m.main.Args, fmt.Sprintf("--progress=:%d", progress.Port))
	if f.Physical {
		m.labelPhysical(g)
		m.setPD(run.GetPhysical(), g)
	} else if threads := run.GetLogical().Threads; threads != nil {
		m.main.Args = append(m.main.Args, fmt.Sprintf("--threads=%d", *threads))
	}
	switch of := run.(type) {
	case *v1alpha1.Backup:
		m.addFlags("--database=", of.Spec.Databases)
		m.addFlags("--table=", of.Spec.Tables)
		m.addFlags("--filter=", of.Spec.Filters)
	case *v1alpha1.Restore:
		m.addFlags("--filter=", of.Spec.Filters)
		m.main.Args = append(m.main.Args, fmt.Sprintf("--allow-non-empty=%t", of.Spec.AllowNonEmpty))
		if f.Log != nil {
			m.main.Args = append(m.main.Args, "--log-folder="+f.Log.Folder, "--log-uid="+f.Log.UID, "--until="+f.Log.Until)
		}
	}
	return m.finish(run.GetRunPod())
}

// Task is what the task of a LogBackup is brought to: a state, and a log that begins at a
// time stamp, 0 for where it does.
type Task struct {
	State    v1alpha1.LogState
	Truncate uint64
}

// RenderLog renders a Job that brings the task of a LogBackup to a state.
func RenderLog(l *v1alpha1.LogBackup, to Task, g *v1alpha1.TiDBGroup, image string, attempt int32) *batchv1.Job {
	t := toolOf(v1alpha1.KindLogBackup, true)
	m := newMaker(l, t.component, attempt)
	m.job.Labels[v1alpha1.LabelCluster], m.job.Spec.Template.Labels[v1alpha1.LabelCluster] = g.PDGroupName(), g.PDGroupName()
	m.job.Annotations[v1alpha1.AnnotationRunGeneration] = strconv.FormatInt(l.Generation, 10)
	m.job.Spec.ActiveDeadlineSeconds = ptr.To[int64](logDeadline)
	m.addTool(image, t, g, l.Spec.RunPod)
	m.mountStorage(FilesOfLog(l), false)
	m.setPD(l.GetPhysical(), g)
	m.main.Args = append(m.main.Args, "--task="+TaskName(l), "--state="+string(to.State), "--begun="+l.Status.TaskStart)
	if to.Truncate > 0 && to.State != v1alpha1.LogStopped {
		m.main.Args = append(m.main.Args, fmt.Sprintf("--truncate=%d", to.Truncate))
	}
	return m.finish(l.Spec.RunPod)
}

// TaskName is the name of a LogBackup's task, for which BR takes letters, digits and _ alone. No
// other LogBackup has it, not even a later one of the same name.
func TaskName(l *v1alpha1.LogBackup) string {
	uid := strings.ReplaceAll(string(l.UID), "-", "")
	return strings.ReplaceAll(l.Name, "-", "_") + "_" + uid[:min(len(uid), uidLength)]
}

// RenderClean renders the Job that deletes the files of a Backup or a LogBackup. It is owned by
// nothing: Kubernetes would delete it when the object is deleted in the foreground. The TiDBGroup
// is nil if it is gone.
func RenderClean(run v1alpha1.Run, f Files, g *v1alpha1.TiDBGroup, image string) *batchv1.Job {
	m := newMaker(run, ComponentClean, 1)
	m.job.OwnerReferences = nil
	m.job.Spec.TTLSecondsAfterFinished = ptr.To[int32](cleanTTL)
	if g != nil {
		m.pod.ImagePullSecrets = workload.PullSecrets(&g.Spec.ComponentSpec)
	}
	m.main.Image = image
	m.main.Command = []string{"/" + program, "clean"}
	m.main.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
	m.mountStorage(f, false)
	return m.finish(run.GetRunPod())
}
