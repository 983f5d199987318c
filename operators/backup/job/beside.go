package job

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// endBeside returns how the program of a Job ended whose pod runs on, nil if it does not.
func (p *planner) endBeside(job *batchv1.Job) *corev1.ContainerStateTerminated {
	for _, pod := range p.podsOf(job) {
		if t := workload.EndBeside(pod, jobtemplate.Container); t != nil {
			return t
		}
	}
	return nil
}
