package jobtemplate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// maker gathers what a Job is made of.
type maker struct {
	job     *batchv1.Job
	pod     *corev1.PodSpec
	main    *corev1.Container
	volumes []corev1.Volume
}

// newMaker begins a Job with what all have in common.
func newMaker(run v1alpha1.Run, component string, attempt int32) *maker {
	labels := RunLabels(run)
	labels[v1alpha1.LabelComponent] = component
	annotations := map[string]string{v1alpha1.AnnotationRun: run.RunKind() + "/" + run.GetName()}
	podAnnotations := workload.JobAnnotations()
	maps.Copy(podAnnotations, annotations)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(run, component, attempt), Namespace: run.GetNamespace(), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: run.RunKind(), Name: run.GetName(), UID: run.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels), Annotations: podAnnotations},
			Spec:       workload.JobPod(),
		}},
	}
	m := &maker{job: job, pod: &job.Spec.Template.Spec}
	m.pod.TerminationGracePeriodSeconds = ptr.To[int64](graceSeconds)
	as := m.pod.SecurityContext
	as.RunAsUser, as.RunAsGroup, as.FSGroup = ptr.To[int64](user), ptr.To[int64](user), ptr.To[int64](user)
	as.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	m.main = &corev1.Container{
		Name: Container, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: workload.UnprivilegedContext(false),
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

// mountStorage gives the container the storage. A Secret may be missing: the program says so,
// where a pod would only hang.
func (m *maker) mountStorage(f Files, readOnly bool) {
	add := func(args ...string) { m.main.Args = append(m.main.Args, args...) }
	add("--folder="+f.Path(), "--uid="+f.UID)
	if s := f.Storage.S3; s != nil {
		add("--bucket="+s.Bucket, "--region="+RegionOf(s), fmt.Sprintf("--path-style=%t", ptr.Deref(s.ForcePathStyle, true)))
		if s.Endpoint != "" {
			add("--endpoint=" + s.Endpoint)
		}
		m.mountCredentials(s.Secret)
		if ca := s.CASecret; ca != nil {
			add("--storage-ca="+path.Join(authorityDir, v1alpha1.TLSKeyCA), "--storage-ca-of="+workload.KeyText(ca))
			m.mount("storage-ca", authorityDir, workload.KeyVolume(ca, v1alpha1.TLSKeyCA), true)
		}
	}
	if s := f.Storage.GCS; s != nil {
		add("--provider=gcs", "--bucket="+s.Bucket)
		m.mountCredentials(s.Secret)
	}
	if s := f.Storage.Azblob; s != nil {
		add("--provider=azblob", "--account="+s.Account, "--bucket="+s.Container)
		m.mountCredentials(&s.Secret)
	}
	if s := f.Storage.PVC; s != nil {
		add("--volume=" + volumeDir)
		m.mount("storage", volumeDir, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.ClaimName}}, readOnly)
	}
}

// RegionOf is the region of a bucket.
func RegionOf(s *v1alpha1.S3Storage) string { return cmp.Or(s.Region, "us-east-1") }

// mountCredentials mounts the Secret of a bucket; nil for one that is reached by the pod's identity.
func (m *maker) mountCredentials(secret *v1alpha1.LocalReference) {
	if secret == nil {
		return
	}
	m.main.Args = append(m.main.Args, "--credentials="+KeysDir, "--credentials-of=Secret "+secret.Name)
	m.mount("storage", KeysDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name, Optional: ptr.To(true)}}, true)
}

// DatabaseAddress is where Jobs connect to the database: by a name that the certificate for
// MySQL clients has, which the address of a load balancer need not be in. A group that lets
// no client in is reached by the Service of its servers.
func DatabaseAddress(g *v1alpha1.TiDBGroup) (host, port string) {
	if g.IsClosed() {
		return names.ServiceHost(names.PeerService(g.Name), g.Namespace, g.Spec.ClusterDomain), strconv.Itoa(int(v1alpha1.PortTiDB))
	}
	number := workload.ServicePortNumber(g.Spec.Service, workload.Port{Name: "mysql", Number: v1alpha1.PortTiDB})
	return names.ServiceHost(g.Name, g.Namespace, g.Spec.ClusterDomain), strconv.Itoa(int(number))
}

// setLogin gives the container the database, and what its servers are known by.
func (m *maker) setLogin(l v1alpha1.Login, g *v1alpha1.TiDBGroup) {
	host, port := DatabaseAddress(g)
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

// labelPhysical says that of one cluster one such Job runs at a time.
func (m *maker) labelPhysical(g *v1alpha1.TiDBGroup) {
	m.job.Labels[v1alpha1.LabelPhysicalOf], m.job.Spec.Template.Labels[v1alpha1.LabelPhysicalOf] = g.PDGroupName(), g.PDGroupName()
}

// setPD gives the container PD, for BR, which connects as the group's servers do.
func (m *maker) setPD(how v1alpha1.PhysicalRun, g *v1alpha1.TiDBGroup) {
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

// addTool has an init container of the operator's image copy the program into the pod, and
// runs it in the tool's image.
func (m *maker) addTool(image string, t tool, g *v1alpha1.TiDBGroup, of v1alpha1.RunPod) {
	m.mount("program", programDir, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, true)
	m.mount("scratch", scratchDir, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false)
	m.pod.InitContainers = []corev1.Container{{
		Name: "program", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/" + program, "install", programDir + "/" + program},
		// A quota wants to know of each container, and counts the larger.
		Resources:       workload.ContainerResources(of.Resources),
		VolumeMounts:    []corev1.VolumeMount{{Name: "program", MountPath: programDir}},
		SecurityContext: workload.UnprivilegedContext(false),
	}}
	m.pod.ImagePullSecrets = workload.PullSecrets(&g.Spec.ComponentSpec)
	m.main.Image = cmp.Or(of.Image, t.image+":"+g.Spec.Version)
	m.main.ImagePullPolicy = cmp.Or(g.Spec.ImagePullPolicy, corev1.PullIfNotPresent)
	m.main.Command = []string{programDir + "/" + program, t.verb}
	m.main.Args = append(m.main.Args, "--tool="+t.path, "--scratch="+scratchDir)
	m.main.Env = []corev1.EnvVar{{Name: "TMPDIR", Value: scratchDir}, {Name: "HOME", Value: scratchDir}}
	m.main.Resources = workload.ContainerResources(of.Resources)
}

func (m *maker) addFlags(flag string, values []string) {
	for _, value := range values {
		// Kubernetes would look for a variable.
		m.main.Args = append(m.main.Args, flag+strings.ReplaceAll(value, "$(", "$$("))
	}
}
