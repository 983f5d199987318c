package sqljob

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/initialsql"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// Component is what the pod of a Job is labelled with: the group's Service and
	// budget must not take it for a server.
	Component = "tidb-sql"
	// Container of the pod.
	Container = "sql"

	root      = "root"
	anywhere  = "%"
	sourceDir = "/etc/tidb-sql"
	// certificateDir is where the CA of the servers is.
	certificateDir = "/etc/tidb-tls"
	passwordDir    = "/etc/tidb-password" //nolint:gosec // where it is mounted
	// Names of the files in them.
	sqlFile      = "run.sql"
	passwordFile = "password"
	// result is where Kubernetes reads a container's message from.
	result = corev1.TerminationMessagePathDefault
	// slack is what a Job has beyond the time of the run, seconds: its pod waits for a
	// node and its image, and Kubernetes would delete it without a trace of whether it ran.
	slack = 24 * 3600
	// defaultTimeout of a run, seconds.
	defaultTimeout = 600
	// maxJobName is how long a Job's name may be: it is a label of its pod.
	maxJobName = 63
	sumBytes   = 4
	// between stands in a Job's name between those of the group and the run.
	between = "-sql-"
)

// Selector returns the labels that a group's Jobs have, and no other object.
func Selector(g *v1alpha1.TiDBGroup) map[string]string {
	out := workload.Selector(g)
	out[v1alpha1.LabelComponent] = Component
	return out
}

// jobName returns the name of the Job of a run's revision. One that might also be that of a
// run of another group, as with group g-sql-x beside g, has the sum of both.
func jobName(group string, run *v1alpha1.SQLRun) string {
	name := fmt.Sprintf("%s%s%s-%d", group, between, run.Name, run.Revision)
	of, isUnique := name, strings.Index(name, between) == strings.LastIndex(name, between)
	if len(name) <= maxJobName && isUnique {
		return name
	}
	if !isUnique {
		of = group + "/" + name
	}
	sum := sha256.Sum256([]byte(of))
	tail := "-" + hex.EncodeToString(sum[:sumBytes])
	return name[:min(len(name), maxJobName-len(tail))] + tail
}

// timeoutSeconds is for how long the program of a run may take.
func timeoutSeconds(run *v1alpha1.SQLRun) int64 {
	return int64(cmp.Or(run.TimeoutSeconds, defaultTimeout))
}

// renderJob renders the Job of a run. Whatever it mounts may be missing: the program
// waits for it, and says what it waits for, where a pod would only hang.
func renderJob(g *v1alpha1.TiDBGroup, run *v1alpha1.SQLRun, image string, port int32) *batchv1.Job {
	labels := workload.Labels(g)
	labels[v1alpha1.LabelComponent] = Component
	labels[v1alpha1.LabelSQL] = run.Name
	timeout := timeoutSeconds(run)
	args := []string{
		fmt.Sprintf("--address=%s:%d", names.ServiceHost(g.Name, g.Namespace, g.Spec.ClusterDomain), port),
		"--user=" + cmp.Or(run.User, root),
		fmt.Sprintf("--within=%ds", timeout), "--result=" + result,
	}
	source, more := sourceOf(g, run)
	args = append(args, more...)
	volumes := []corev1.Volume{{Name: "sql", VolumeSource: source}}
	mounts := []corev1.VolumeMount{{Name: "sql", MountPath: sourceDir, ReadOnly: true}}
	if password, more := passwordOf(g, run); password != nil {
		args = append(args, more...)
		volumes = append(volumes, corev1.Volume{Name: "password", VolumeSource: *password})
		mounts = append(mounts, corev1.VolumeMount{Name: "password", MountPath: passwordDir, ReadOnly: true})
	}
	if source := workload.MySQLCertificate(g); source != nil {
		args = append(args, "--tls="+certificateDir)
		volumes = append(volumes, corev1.Volume{Name: "tls", VolumeSource: *source})
		mounts = append(mounts, corev1.VolumeMount{Name: "tls", MountPath: certificateDir, ReadOnly: true})
	}
	meta := workload.Meta(g, jobName(g.Name, run))
	meta.Labels = labels
	pod := workload.JobPod()
	pod.ImagePullSecrets, pod.NodeSelector, pod.Tolerations = workload.PullSecrets(&g.Spec.ComponentSpec), g.Spec.NodeSelector, workload.Tolerations(&g.Spec.ComponentSpec)
	pod.Volumes = volumes
	pod.Containers = []corev1.Container{{
		Name: Container, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/sql"}, Args: args, VolumeMounts: mounts,
		SecurityContext: workload.UnprivilegedContext(false),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
	}}
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), PodFailurePolicy: failurePolicy(run), ActiveDeadlineSeconds: ptr.To(timeout + slack),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels), Annotations: workload.JobAnnotations()}, Spec: pod},
	}}
}

// failurePolicy has Kubernetes make another pod in place of one that was evicted, or whose node is
// lost. That is for users alone, which may be set again: statements may have run.
func failurePolicy(run *v1alpha1.SQLRun) *batchv1.PodFailurePolicy {
	if run.Users == nil {
		return nil
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// sourceOf returns where the SQL of a run is, and the arguments that say so.
func sourceOf(g *v1alpha1.TiDBGroup, run *v1alpha1.SQLRun) (corev1.VolumeSource, []string) {
	file := "--file=" + path.Join(sourceDir, sqlFile)
	switch {
	case run.ConfigMap != nil:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: run.ConfigMap.Name}, Optional: ptr.To(true),
			Items: []corev1.KeyToPath{{Key: run.ConfigMap.Key, Path: sqlFile}},
		}}, []string{file, fmt.Sprintf("--of=key %s of ConfigMap %s", run.ConfigMap.Key, run.ConfigMap.Name)}
	case run.Secret != nil:
		return workload.KeyVolume(run.Secret, sqlFile), []string{file, "--secret", "--of=" + workload.KeyText(run.Secret)}
	case run.Users != nil:
		args := []string{"--users=" + sourceDir, "--secret", "--host=" + cmp.Or(run.Users.Host, anywhere), "--of=Secret " + run.Users.Secret}
		if initialsql.GeneratesRootPassword(g) {
			args = append(args, "--taken="+root)
		}
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: run.Users.Secret, Optional: ptr.To(true)}}, args
	}
	return corev1.VolumeSource{}, nil // the CRD asks for one of them
}

// passwordOf returns where the password to connect with is, nil if there is none, and
// the arguments that say so. What initialization.users names need not have a password
// for root: then it has none.
func passwordOf(g *v1alpha1.TiDBGroup, run *v1alpha1.SQLRun) (*corev1.VolumeSource, []string) {
	reference, needed := run.PasswordSecret, true
	first := g.Spec.Initialization
	switch {
	case reference != nil:
	case cmp.Or(run.User, root) != root:
		return nil, nil // the CRD asks for a password
	case initialsql.GeneratesRootPassword(g):
		reference = &v1alpha1.KeyReference{Name: initialsql.RootSecretName(g), Key: initialsql.RootPasswordKey}
	case first != nil && first.Users != nil:
		reference, needed = &v1alpha1.KeyReference{Name: first.Users.Secret, Key: root}, false
	default:
		return nil, nil
	}
	args := []string{"--password=" + path.Join(passwordDir, passwordFile)}
	if needed {
		args = append(args, "--password-of="+workload.KeyText(reference))
	}
	return ptr.To(workload.KeyVolume(reference, passwordFile)), args
}
