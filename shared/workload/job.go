package workload

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// refusal is how soon a Job has failed after its pod came to a node that refuses it.
const refusal = 10 * time.Second

// rejected is how a kubelet begins the message of every pod that it refuses, whatever the reason: that
// its node is short of disk has the reason of an eviction.
const rejected = "Pod was rejected: "

// JobPod returns what the pods of all Jobs have in common: they run once, without root and
// without access to the API server.
func JobPod() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
}

// JobAnnotations keep programs that remove nodes which are not needed, or that move pods to fewer, from
// ending the pod of a Job: what it has done so far would be lost, and a restore is never begun again.
func JobAnnotations() map[string]string {
	return map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
}

// JobCondition returns a condition of a Job that is True, nil if there is none.
func JobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// HasJobEnded reports whether a Job is over.
func HasJobEnded(job *batchv1.Job) bool {
	return JobCondition(job, batchv1.JobComplete) != nil || JobCondition(job, batchv1.JobFailed) != nil
}

// EndBeside returns how a container of a pod ended while others of it run on, nil if it has not:
// others put containers into pods, as a service mesh does, which end with no program. Kubernetes ends
// the Job of the pod only with them.
func EndBeside(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	var ended *corev1.ContainerStateTerminated
	runsOn := false
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		runsOn = runsOn || c.State.Running != nil
		if c.Name == container {
			ended = c.State.Terminated
		}
	}
	if !runsOn {
		return nil
	}
	return ended
}

// MayHaveStarted reports whether the container with the program may have run in a pod whose Job failed at a
// time. It has not if the node has refused the pod, or the container before it has failed. A kubelet
// that is started again also refuses pods that ran, and forgets their containers: only when the
// pod came to the node stays.
func MayHaveStarted(pod *corev1.Pod, failed metav1.Time) bool {
	s := pod.Status
	for _, c := range s.ContainerStatuses {
		if c.State.Waiting == nil {
			return true
		}
	}
	for _, c := range s.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return false
		}
	}
	refused := strings.HasPrefix(s.Message, rejected)
	atOnce := s.StartTime != nil && failed.Sub(s.StartTime.Time).Abs() < refusal
	return !refused || !atOnce || len(s.InitContainerStatuses)+len(s.ContainerStatuses) > 0
}

// KeyVolume returns a volume with one key of a Secret as a file. The Secret may be missing:
// the program that reads it says so, where a pod would only hang.
func KeyVolume(r *v1alpha1.KeyReference, file string) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: r.Name, Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: r.Key, Path: file}},
	}}
}

// KeyText names a key of a Secret in messages.
func KeyText(r *v1alpha1.KeyReference) string {
	return fmt.Sprintf("key %s of Secret %s", r.Key, r.Name)
}

// MySQLCertificate returns where a MySQL client of a group finds the CA of the servers, nil
// if they have no TLS for such, and the certificate to show where they want one: their own.
func MySQLCertificate(g *v1alpha1.TiDBGroup) *corev1.VolumeSource {
	secret := v1alpha1.MySQLSecretName(g)
	if secret == "" {
		return nil
	}
	out := KeyVolume(&v1alpha1.KeyReference{Name: secret, Key: v1alpha1.TLSKeyCA}, v1alpha1.TLSKeyCA)
	if v1alpha1.VerifiesClients(g) {
		for _, key := range []string{v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey} {
			out.Secret.Items = append(out.Secret.Items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	return &out
}
