package job

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// Container of the pod that runs the tool.
	Container = "run"
	// Components that Jobs and pods are labelled with.
	componentBackup  = "backup"
	componentRestore = "restore"
	componentClean   = "backup-clean"
	componentLog     = "backup-log"

	program        = "backup-runner"
	programDir     = "/tidb-groups"
	scratchDir     = "/scratch"
	volumeDir      = "/backups"
	keysDir        = "/etc/backup-storage"
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
	// cleanTTL is after how long Kubernetes deletes a Job that nobody waits for any more.
	cleanTTL = 3600
)

// tool is what a kind of Job runs.
type tool struct{ component, verb, image, path string }

func toolOf(kind string, physical bool) tool {
	out := tool{componentBackup, "backup", "pingcap/dumpling", "/dumpling"}
	if kind == v1alpha1.KindRestore {
		out = tool{componentRestore, "restore", "pingcap/tidb-lightning", "/tidb-lightning"}
	}
	if kind == v1alpha1.KindLogBackup {
		out = tool{componentLog, "log", "pingcap/br", "/br"}
	}
	if physical {
		out.image, out.path = "pingcap/br", "/br"
	}
	return out
}

// files are those of one backup.
type files struct {
	storage v1alpha1.Storage
	// folder is named after the Backup, uid is the Backup's; empty if it is not known.
	folder, uid string
	// physical says that BR writes or reads them.
	physical bool
	// log is a log that is restored after them; nil for none.
	log *logOf
}

// logOf is a log in the same storage: where its folder is, the UID of its LogBackup if that is known, and
// the time stamp to restore to, empty for its last.
type logOf struct{ folder, uid, until string }

// filesOf are the files of a Backup.
func filesOf(b *v1alpha1.Backup) files {
	return files{storage: b.Spec.Storage, folder: b.Name, uid: string(b.UID), physical: b.Spec.Type == v1alpha1.BackupPhysical}
}

// filesOfLog are those of a LogBackup.
func filesOfLog(l *v1alpha1.LogBackup) files {
	return files{storage: l.Spec.Storage, folder: l.Name, uid: string(l.UID), physical: true}
}

// path is the folder in the bucket or on the volume.
func (f files) path() string { return f.below(f.folder) }

// below is a folder in the bucket or on the volume.
func (f files) below(folder string) string {
	switch s := f.storage; {
	case s.S3 != nil:
		return path.Join(s.S3.Prefix, folder)
	case s.GCS != nil:
		return path.Join(s.GCS.Prefix, folder)
	case s.Azblob != nil:
		return path.Join(s.Azblob.Prefix, folder)
	case s.PVC != nil:
		return path.Join(s.PVC.Path, folder)
	}
	return folder
}

// location is what status says of them.
func (f files) location() string {
	switch s := f.storage; {
	case s.S3 != nil:
		return "s3://" + s.S3.Bucket + "/" + f.path()
	case s.GCS != nil:
		return "gcs://" + s.GCS.Bucket + "/" + f.path()
	case s.Azblob != nil:
		return "azure://" + s.Azblob.Container + "/" + f.path()
	case s.PVC != nil:
		return "pvc://" + s.PVC.ClaimName + "/" + f.path()
	}
	return ""
}

// Labels are those of a run's Jobs and pods, but for the component.
func Labels(run v1alpha1.Run) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb", v1alpha1.LabelRun: string(run.GetUID())}
}

// jobName returns the name of a Job.
func jobName(run v1alpha1.Run, component string, attempt int32) string {
	switch {
	case component == componentClean && run.RunKind() == v1alpha1.KindLogBackup:
		component = "logclean"
	case component == componentClean:
		component = "clean"
	case component == componentLog:
		component = "log"
	}
	return fmt.Sprintf("%s-%s-%d", run.GetName(), component, attempt)
}

// maker gathers what a Job is made of.
type maker struct {
	job     *batchv1.Job
	pod     *corev1.PodSpec
	main    *corev1.Container
	volumes []corev1.Volume
}

// newMaker begins a Job with what all have in common.
func newMaker(run v1alpha1.Run, component string, attempt int32) *maker {
	labels := Labels(run)
	labels[v1alpha1.LabelComponent] = component
	annotations := map[string]string{v1alpha1.AnnotationRun: run.RunKind() + "/" + run.GetName()}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: jobName(run, component, attempt), Namespace: run.GetNamespace(), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: run.RunKind(), Name: run.GetName(), UID: run.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels), Annotations: maps.Clone(annotations)},
			Spec:       workload.JobPod(),
		}},
	}
	m := &maker{job: job, pod: &job.Spec.Template.Spec}
	m.pod.TerminationGracePeriodSeconds = ptr.To[int64](graceSeconds)
	as := m.pod.SecurityContext
	as.RunAsUser, as.RunAsGroup, as.FSGroup = ptr.To[int64](user), ptr.To[int64](user), ptr.To[int64](user)
	as.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	m.main = &corev1.Container{
		Name: Container, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: workload.Unprivileged(false),
		Args: []string{"--result=" + corev1.TerminationMessagePathDefault},
	}
	return m
}

// finish returns the Job.
func (m *maker) finish(of v1alpha1.RunPod) *batchv1.Job {
	m.pod.NodeSelector, m.pod.ServiceAccountName = of.NodeSelector, of.ServiceAccountName
	m.pod.Tolerations = workload.Tolerations(&v1alpha1.ComponentSpec{Tolerations: of.Tolerations})
	m.pod.Volumes = m.volumes
	m.pod.Containers = []corev1.Container{*m.main}
	return m.job
}

// mount adds a volume to the container.
func (m *maker) mount(name, at string, source corev1.VolumeSource, readOnly bool) {
	m.volumes = append(m.volumes, corev1.Volume{Name: name, VolumeSource: source})
	m.main.VolumeMounts = append(m.main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly})
}

// reach gives the container the storage. A Secret may be missing: the program says so,
// where a pod would only hang.
func (m *maker) reach(f files, readOnly bool) {
	add := func(args ...string) { m.main.Args = append(m.main.Args, args...) }
	add("--folder="+f.path(), "--uid="+f.uid)
	if s := f.storage.S3; s != nil {
		add("--bucket="+s.Bucket, "--region="+cmp.Or(s.Region, "us-east-1"), fmt.Sprintf("--path-style=%t", ptr.Deref(s.ForcePathStyle, true)))
		if s.Endpoint != "" {
			add("--endpoint=" + s.Endpoint)
		}
		m.credentials(s.Secret)
		if ca := s.CASecret; ca != nil {
			add("--storage-ca="+path.Join(authorityDir, v1alpha1.TLSKeyCA), "--storage-ca-of="+workload.KeyText(ca))
			m.mount("storage-ca", authorityDir, workload.KeyVolume(ca, v1alpha1.TLSKeyCA), true)
		}
	}
	if s := f.storage.GCS; s != nil {
		add("--provider=gcs", "--bucket="+s.Bucket)
		m.credentials(s.Secret)
	}
	if s := f.storage.Azblob; s != nil {
		add("--provider=azblob", "--account="+s.Account, "--bucket="+s.Container)
		m.credentials(&s.Secret)
	}
	if s := f.storage.PVC; s != nil {
		add("--volume=" + volumeDir)
		m.mount("storage", volumeDir, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.ClaimName}}, readOnly)
	}
}

// credentials mounts the Secret of a bucket; nil for one that is reached by the pod's identity.
func (m *maker) credentials(secret *v1alpha1.LocalReference) {
	if secret == nil {
		return
	}
	m.main.Args = append(m.main.Args, "--credentials="+keysDir, "--credentials-of=Secret "+secret.Name)
	m.mount("storage", keysDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name, Optional: ptr.To(true)}}, true)
}

// address is where the database is connected to; empty if it is not known. A group that lets no
// client in is reached by the Service of its servers.
func address(g *v1alpha1.TiDBGroup) (host, port string) {
	if g.IsClosed() {
		return names.ServiceHost(names.PeerService(g.Name), g.Namespace, g.Spec.ClusterDomain), strconv.Itoa(int(v1alpha1.PortTiDB))
	}
	host, port, _ = net.SplitHostPort(g.Status.Endpoint)
	return host, port
}

// login gives the container the database, and what its servers are known by.
func (m *maker) login(l v1alpha1.Login, g *v1alpha1.TiDBGroup) {
	host, port := address(g)
	m.main.Args = append(m.main.Args, "--host="+host, "--port="+port, fmt.Sprintf("--status-port=%d", v1alpha1.PortTiDBStatus), "--user="+cmp.Or(l.User, root))
	if ref := l.PasswordSecret; ref != nil {
		m.main.Args = append(m.main.Args, "--password="+path.Join(passwordDir, password), "--password-of="+workload.KeyText(ref))
		m.mount("password", passwordDir, workload.KeyVolume(ref, password), true)
	}
	if source := workload.MySQLCertificate(g); source != nil {
		m.main.Args = append(m.main.Args, "--tls="+certificateDir, "--tls-of=Secret "+v1alpha1.MySQLSecretName(g))
		m.mount("tls", certificateDir, *source, true)
	}
}

// alone says that of one cluster one such Job runs at a time.
func (m *maker) alone(g *v1alpha1.TiDBGroup) {
	m.job.Labels[v1alpha1.LabelPhysicalOf], m.job.Spec.Template.Labels[v1alpha1.LabelPhysicalOf] = g.PDGroupName(), g.PDGroupName()
}

// lead gives the container PD, for BR, which connects as the group's servers do.
func (m *maker) lead(how v1alpha1.PhysicalRun, g *v1alpha1.TiDBGroup) {
	add := func(args ...string) { m.main.Args = append(m.main.Args, args...) }
	add(fmt.Sprintf("--pd=%s://%s:%d", v1alpha1.SpecScheme(g), names.ServiceHost(g.PDGroupName(), g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortPDClient))
	if secret := v1alpha1.ClusterSecretName(g); secret != "" {
		add("--pd-tls=" + clusterDir)
		m.mount("cluster-tls", clusterDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}, true)
	}
	if how.Concurrency != nil {
		add(fmt.Sprintf("--concurrency=%d", *how.Concurrency))
	}
	if how.RateLimit != nil {
		add(fmt.Sprintf("--rate-limit=%d", *how.RateLimit))
	}
	if how.Checksum != nil {
		add(fmt.Sprintf("--checksum=%t", *how.Checksum))
	}
}

// bring has an init container of the operator's image copy the program into the pod, and
// runs it in the tool's image.
func (m *maker) bring(image string, t tool, g *v1alpha1.TiDBGroup, of v1alpha1.RunPod) {
	m.mount("program", programDir, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, true)
	m.mount("scratch", scratchDir, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false)
	m.pod.InitContainers = []corev1.Container{{
		Name: "program", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/" + program, "install", programDir + "/" + program},
		// A quota wants to know of each container, and counts the larger.
		Resources:       workload.ContainerResources(of.Resources),
		VolumeMounts:    []corev1.VolumeMount{{Name: "program", MountPath: programDir}},
		SecurityContext: workload.Unprivileged(false),
	}}
	m.pod.ImagePullSecrets = workload.PullSecrets(&g.Spec.ComponentSpec)
	m.main.Image = cmp.Or(of.Image, t.image+":"+g.Spec.Version)
	m.main.ImagePullPolicy = cmp.Or(g.Spec.ImagePullPolicy, corev1.PullIfNotPresent)
	m.main.Command = []string{programDir + "/" + program, t.verb}
	m.main.Args = append(m.main.Args, "--tool="+t.path, "--scratch="+scratchDir)
	m.main.Env = []corev1.EnvVar{{Name: "TMPDIR", Value: scratchDir}, {Name: "HOME", Value: scratchDir}}
	m.main.Resources = workload.ContainerResources(of.Resources)
}

// render renders the Job of a run.
func render(run v1alpha1.Run, f files, g *v1alpha1.TiDBGroup, image string, attempt int32) *batchv1.Job {
	t := toolOf(run.RunKind(), f.physical)
	m := newMaker(run, t.component, attempt)
	m.job.Labels[v1alpha1.LabelCluster], m.job.Spec.Template.Labels[v1alpha1.LabelCluster] = g.PDGroupName(), g.PDGroupName()
	m.bring(image, t, g, run.GetRunPod())
	m.reach(f, run.RunKind() == v1alpha1.KindRestore)
	m.login(run.GetLogin(), g)
	m.main.Args = append(m.main.Args, fmt.Sprintf("--progress=:%d", progress.Port))
	if f.physical {
		m.alone(g)
		m.lead(run.GetPhysical(), g)
	} else if threads := run.GetLogical().Threads; threads != nil {
		m.main.Args = append(m.main.Args, fmt.Sprintf("--threads=%d", *threads))
	}
	switch of := run.(type) {
	case *v1alpha1.Backup:
		m.choose("--database=", of.Spec.Databases)
		m.choose("--table=", of.Spec.Tables)
		m.choose("--filter=", of.Spec.Filters)
	case *v1alpha1.Restore:
		m.choose("--filter=", of.Spec.Filters)
		m.main.Args = append(m.main.Args, fmt.Sprintf("--allow-non-empty=%t", of.Spec.AllowNonEmpty))
		if f.log != nil {
			m.main.Args = append(m.main.Args, "--log-folder="+f.log.folder, "--log-uid="+f.log.uid, "--until="+f.log.until)
		}
	}
	return m.finish(run.GetRunPod())
}

func (m *maker) choose(flag string, values []string) {
	for _, value := range values {
		// Kubernetes would look for a variable.
		m.main.Args = append(m.main.Args, flag+strings.ReplaceAll(value, "$(", "$$("))
	}
}

// renderLog renders a Job that brings the task of a LogBackup to a state.
func (p *planner) renderLog(l *v1alpha1.LogBackup, state v1alpha1.LogState) *batchv1.Job {
	t, g := toolOf(v1alpha1.KindLogBackup, true), p.seen.Group
	m := newMaker(l, t.component, p.plan.Status.Attempts+1)
	m.job.Labels[v1alpha1.LabelCluster], m.job.Spec.Template.Labels[v1alpha1.LabelCluster] = g.PDGroupName(), g.PDGroupName()
	m.job.Annotations[v1alpha1.AnnotationRunGeneration] = strconv.FormatInt(l.Generation, 10)
	m.job.Spec.ActiveDeadlineSeconds = ptr.To[int64](logDeadline)
	m.bring(p.seen.Image, t, g, l.Spec.RunPod)
	m.reach(filesOfLog(l), false)
	m.lead(l.GetPhysical(), g)
	m.main.Args = append(m.main.Args, "--task="+TaskName(l), "--state="+string(state), "--begun="+l.Status.TaskStart)
	if until := p.truncation(l); until > 0 && state != v1alpha1.LogStopped {
		m.main.Args = append(m.main.Args, fmt.Sprintf("--truncate=%d", until))
	}
	return m.finish(l.Spec.RunPod)
}

// TaskName is the name of a LogBackup's task, for which BR takes letters, digits and _ alone. No
// other LogBackup has it, not even a later one of the same name.
func TaskName(l *v1alpha1.LogBackup) string {
	uid := strings.ReplaceAll(string(l.UID), "-", "")
	return strings.ReplaceAll(l.Name, "-", "_") + "_" + uid[:min(len(uid), uidLength)]
}

// renderClean renders the Job that deletes the files of a Backup or a LogBackup. It is owned by
// nobody: Kubernetes would delete it when the object is deleted in the foreground.
func renderClean(run v1alpha1.Run, f files, image string) *batchv1.Job {
	m := newMaker(run, componentClean, 1)
	m.job.OwnerReferences = nil
	m.job.Spec.TTLSecondsAfterFinished = ptr.To[int32](cleanTTL)
	m.main.Image = image
	m.main.Command = []string{"/" + program, "clean"}
	m.main.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
	m.reach(f, false)
	return m.finish(run.GetRunPod())
}
