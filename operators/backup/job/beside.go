package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
)

// endBeside returns how the program of a Job ended whose pod runs on, nil if it does not: others put
// containers into pods, as a service mesh does, which end with no program. Kubernetes ends the Job only with them.
func (p *planner) endBeside(job *batchv1.Job) *corev1.ContainerStateTerminated {
	for _, pod := range p.podsOf(job) {
		all := pod.Status.ContainerStatuses
		program := slices.IndexFunc(all, func(c corev1.ContainerStatus) bool { return c.Name == jobtemplate.Container })
		goesOn := slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
		if program >= 0 && goesOn && all[program].State.Terminated != nil {
			return all[program].State.Terminated
		}
	}
	return nil
}
