package grouptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// BadImage is part of the name of every image that cannot be pulled.
const BadImage = "bad"

// Pod of an Instance.
type Pod struct {
	// Name of the pod and its Instance.
	Name string
	// UID of the pod.
	UID types.UID
	// Revision that it runs, and MadeFrom the one that it was made from.
	Revision, MadeFrom string
	// Ready says that it serves.
	Ready bool
	// Stopping says that it is being stopped and has not ended.
	Stopping bool

	template corev1.PodTemplateSpec
	since    metav1.Time // it is ready
}

// Pod returns the pod of an Instance; the zero Pod if it has none.
func (s *Simulation) Pod(name string) Pod {
	if p := s.pods[name]; p != nil {
		return *p
	}
	return Pod{}
}

// CountServing counts the pods that serve.
func (s *Simulation) CountServing() int {
	n := 0
	for _, p := range s.pods {
		if p.Ready {
			n++
		}
	}
	return n
}

// Operate is one reconcile of the instance operator: it stops, makes or changes
// the pod of an Instance and writes the status.
func (s *Simulation) Operate(name string) {
	i := s.instances[name]
	if i == nil {
		return
	}
	pod := s.pods[name]
	switch {
	case pod != nil && s.HasToStop(i):
		s.stop(pod)
	case isReleased(i):
		s.RemoveInstance(name)
		return
	case pod == nil && !i.Spec.Suspended:
		s.pods[name] = &Pod{Name: name, UID: s.nextUID("pod"), Revision: i.Spec.Revision, MadeFrom: i.Spec.Revision, template: wantedTemplate(i)}
	case pod != nil && pod.Revision != i.Spec.Revision:
		if pod.Revision != i.Spec.InPlaceFrom && pod.MadeFrom == pod.Revision {
			pod.MadeFrom = i.Spec.Revision
		}
		pod.Revision, pod.template = i.Spec.Revision, wantedTemplate(i)
	}
	s.writeStatus(i)
}

// wantedTemplate is what the pod of an Instance is to be made from.
func wantedTemplate(i *v1alpha1.Instance) (out corev1.PodTemplateSpec) {
	if err := json.Unmarshal(i.Spec.PodTemplate.Raw, &out); err != nil {
		panic(err) // a test's own mistake
	}
	return out
}

// isReleased reports whether an Instance may go.
func isReleased(i *v1alpha1.Instance) bool {
	return i.DeletionTimestamp != nil && !slices.Contains(i.Finalizers, v1alpha1.FinalizerMember)
}

// HasToStop reports whether the pod of an Instance, if it has one, is to be stopped, or is being
// stopped already.
func (s *Simulation) HasToStop(i *v1alpha1.Instance) bool {
	pod := s.pods[i.Name]
	if pod == nil {
		return false
	}
	if pod.Stopping || isReleased(i) || i.Spec.Suspended || pod.UID == i.Spec.StopPod {
		return true
	}
	if pod.Revision == i.Spec.Revision || pod.Revision == i.Spec.InPlaceFrom {
		return false
	}
	wanted := wantedTemplate(i)
	return revision.Difference(&pod.template, &wanted).Restart
}

// stop ends a pod, or lets it begin to.
func (s *Simulation) stop(pod *Pod) {
	served := pod.Ready
	pod.Ready, pod.Stopping = false, true
	if s.StopsLate == nil || !s.StopsLate(pod.Name) {
		delete(s.pods, pod.Name)
	}
	if served && s.OnStop != nil {
		s.OnStop(*pod, s.CountServing())
	}
}

func (s *Simulation) writeStatus(i *v1alpha1.Instance) {
	set := conditions.New(i.Status.Conditions, i.Generation, s.Now)
	pod := s.pods[i.Name]
	verdict := conditions.Verdict{Suspended: i.Spec.Suspended, Summary: "the pod runs", Outcome: step.Done()}
	switch {
	case pod == nil:
		verdict.Outcome = step.Wait("pod", 0, v1alpha1.ReasonPodMissing, "there is no pod")
	case pod.Stopping:
		verdict.Outcome = step.Wait("pod", 0, v1alpha1.ReasonPodTerminating, "the pod is being stopped")
	case isBroken(pod):
		verdict.Outcome = step.Wait("pod", 0, v1alpha1.ReasonImagePullFailed, "no such image")
	case !pod.Ready:
		verdict.Outcome = step.Wait("pod", 0, v1alpha1.ReasonPodNotReady, "the pod starts")
	default:
		verdict.Serving = true
	}
	if verdict.Serving {
		set.MarkTrue(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodReady, "the pod runs")
		set.NotBefore(v1alpha1.ConditionPodReady, pod.since)
	} else {
		set.MarkFalse(v1alpha1.ConditionPodReady, verdict.Outcome.Reason, verdict.Outcome.Message)
	}
	set.Finish(verdict)
	before := i.Status.DeepCopy()
	i.Status.PodUID, i.Status.Revision, i.Status.PodIP, i.Status.NodeName, i.Status.MadeFrom = "", "", "", "", ""
	i.Status.ObservedGeneration = i.Generation
	if pod != nil {
		i.Status.PodUID, i.Status.Revision, i.Status.PodIP, i.Status.NodeName = pod.UID, pod.Revision, fmt.Sprintf("10.0.0.%d", i.Spec.Slot+1), "n1"
		if pod.MadeFrom != pod.Revision {
			i.Status.MadeFrom = pod.MadeFrom
		}
	}
	for _, transient := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if set.Get(transient).Type == "" {
			meta.RemoveStatusCondition(&i.Status.Conditions, transient)
		}
	}
	mergeConditions(i, set)
	s.touch(before, i)
}

func isBroken(p *Pod) bool {
	return slices.ContainsFunc(p.template.Spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, BadImage) })
}

// Start lets the pod of an Instance become ready, if it can.
func (s *Simulation) Start(name string) {
	if p := s.pods[name]; p != nil && !p.Ready && !p.Stopping {
		p.Ready, p.since = !isBroken(p), metav1.NewTime(s.Now)
	}
}

// Kill lets the pod of an Instance vanish, as when a user deletes it.
func (s *Simulation) Kill(name string) { delete(s.pods, name) }

// Break makes the pod of an Instance fail.
func (s *Simulation) Break(name string) {
	if p := s.pods[name]; p != nil {
		p.Ready = false
	}
}

// Advance lets every instance operator and pod do all that they can, by slot.
func (s *Simulation) Advance() { s.AdvanceIn(s.Names()) }

// AdvanceIn is Advance in another order: the test chooses which is slow.
func (s *Simulation) AdvanceIn(names []string) {
	for range 3 {
		for _, name := range names {
			s.Operate(name)
			s.Start(name)
		}
	}
}
