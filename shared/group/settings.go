package group

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Settings is how the members of a component take a changed configuration while
// they run. Files are those of a ConfigMap, by name. All of it is pure.
type Settings interface {
	// Restart says why members that run with some files need a restart to run with
	// others; empty if they can be given what differs.
	Restart(old, wanted map[string]string) string
	// Given says how far the running member of an Instance is on its way to run
	// with the wanted files, when it may run with any of some others.
	Given(i *v1alpha1.Instance, others []map[string]string, wanted map[string]string) Given
}

// Given is how far a running member is with the items of a configuration.
type Given struct {
	// Outcome says what it still lacks, and why; Done if nothing.
	Outcome step.Outcome
	// Give says that it is to be given what it lacks now.
	Give bool
	// Stuck names what it was given and cannot be rid of without a restart; empty
	// if nothing.
	Stuck string
}

// Gift is the configuration that a running member is to be given. Others is what
// else it may run with.
type Gift struct {
	Instance *v1alpha1.Instance
	Others   []map[string]string
	Wanted   map[string]string
}

// Running is what a running member was last seen to run with.
type Running struct {
	// Pod of the member, and since when it is ready: a process that starts anew
	// runs with its file again.
	Pod   types.UID
	Since metav1.Time
	// Values of the items that the member shows, by key.
	Values map[string]string
	// Taken are the items that it said it took, by key, and Refused those that it
	// did not take: what was asked for, and its answer. Tried is when it answered, or
	// was given up.
	Taken   map[string]string
	Refused map[string]Refusal
	Tried   metav1.Time
	// Giving says that it is being given items: what else is known of it was so
	// before.
	Giving bool
	// Err is why it could not be asked, or given something, at Tried. Failed is why it
	// could not be given something the last time.
	Err, Failed error
}

// Refusal is the value that a member did not take, and what it answered.
type Refusal struct {
	Value, Answer string
	// Unsure says that the member may have taken it all the same: it does not show
	// the item, and has refused it together with others.
	Unsure bool
}

// ReadySince returns since when the pod of an Instance is ready, and whether it
// is.
func ReadySince(i *v1alpha1.Instance) (metav1.Time, bool) {
	c := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
	if c == nil || c.Status != metav1.ConditionTrue || i.Status.PodIP == "" {
		return metav1.Time{}, false
	}
	return c.LastTransitionTime, true
}

// Strays reports whether the running member of an Instance may run with something
// else than the file of its pod says, so that it has to be looked at.
func Strays(i *v1alpha1.Instance) bool {
	return i.Status.MadeFrom != "" || len(given(i)) > 0
}

// given returns the revisions whose configuration the running member may have been
// given.
func given(i *v1alpha1.Instance) []string {
	pod, revisions, _ := strings.Cut(i.Annotations[v1alpha1.AnnotationGiven], " ")
	if pod == "" || pod != string(i.Status.PodUID) {
		return nil
	}
	return strings.Fields(revisions)
}

// stored are the files of the revisions that are stored, by the revision's name.
type stored map[string]map[string]string

// stored reads the revisions once for a plan, if anything needs them.
func (p *Plan) stored(s Snapshot) (stored, error) {
	if p.files != nil {
		return p.files, nil
	}
	out := stored{}
	for _, object := range s.Revisions {
		r, err := revision.Decode(object)
		if err != nil {
			return nil, err
		}
		hash, err := r.Hash()
		if err != nil {
			return nil, err
		}
		out[hash] = r.Files
	}
	out[p.Target.Hash] = p.Target.Files
	p.files = out
	return out, nil
}

// others returns what an Instance's member may run with besides what is wanted.
// A revision that is not stored any more may have said anything.
func (f stored) others(revisions ...string) []map[string]string {
	slices.Sort(revisions)
	var out []map[string]string
	for _, name := range slices.Compact(revisions) {
		if name != "" {
			out = append(out, f[name])
		}
	}
	return out
}

// keepGiven leaves on an Instance which revisions' configuration its member may
// have been given.
func (m *resident) keepGiven(revisions []string) {
	for _, i := range []*v1alpha1.Instance{m.kept, m.wanted} {
		if len(revisions) > 0 {
			setAnnotation(i, v1alpha1.AnnotationGiven, string(m.live.Status.PodUID)+" "+strings.Join(revisions, " "))
		}
	}
}

// still adds what a running member still lacks of its configuration to a plan.
func (m *resident) still(plan *Plan, lacks Given, gift Gift) {
	plan.Settings = step.Worst(plan.Settings, lacks.Outcome)
	if lacks.Give {
		gift.Instance = m.live
		plan.Gifts = append(plan.Gifts, gift)
		plan.Notes = append(plan.Notes, "give Instance "+m.live.Name+" its configuration while it runs")
	}
}

// take has a running member given what another revision differs in, if it takes
// that while it runs, and lets the Instance have the revision once the member has
// shown that it has all of it: until then a pod that is made anew gets the files
// that are known to be good. It says why the pod has to be restarted all the same;
// empty if it has not.
func (m *resident) take(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, old, wanted *corev1.PodTemplateSpec, why string) (string, error) {
	live, target := m.live, plan.Target
	if r.Settings == nil || g.GetComponentSpec().Suspended {
		return why, nil
	}
	files, err := plan.stored(s)
	if err != nil || files[live.Spec.Revision] == nil {
		return why, err
	}
	mounted, err := remounted(g, wanted, target.Files, files[live.Spec.Revision])
	if err != nil || revision.Difference(old, mounted).Restart || r.Settings.Restart(files[live.Spec.Revision], target.Files) != "" {
		return why, err
	}
	marks := given(live)
	if _, ready := ReadySince(live); !ready || live.Status.Revision != live.Spec.Revision || live.Status.PodUID == live.Spec.StopPod {
		left := patience(s, live)
		if left <= 0 && r.Disrupt.Spare(live) {
			return why, nil
		}
		wait := step.Wait("Instance", waitDeadline, v1alpha1.ReasonConfigPending, "Instance "+live.Name+" is given its changed configuration when its pod is ready")
		if left > 0 {
			wait.After = min(left, waitDeadline)
		}
		m.taking = true
		m.keepGiven(marks)
		plan.Settings = step.Worst(plan.Settings, wait)
		return "", nil
	}
	others := files.others(append(marks, live.Spec.Revision, live.Status.MadeFrom)...)
	lacks := r.Settings.Given(live, others, target.Files)
	switch {
	case lacks.Stuck != "":
		m.keepGiven(marks)
		return lacks.Stuck, nil
	case lacks.Outcome.Kind == step.KindDone:
		m.wanted.Spec.InPlaceFrom = live.Spec.Revision
		m.kept = m.wanted
		plan.Notes = append(plan.Notes, fmt.Sprintf("change Instance %s in place: its member runs with the changed configuration", live.Name))
		return "", nil
	case !slices.Contains(marks, target.Hash):
		// The mark is written before anything is done.
		marks, lacks.Give = append(marks, target.Hash), false
		plan.Notes = append(plan.Notes, "mark Instance "+live.Name+": its member is given a changed configuration")
	}
	m.taking = true
	m.keepGiven(marks)
	m.still(plan, lacks, Gift{Others: others, Wanted: target.Files})
	return "", nil
}

// remounted returns a template with the ConfigMap of other files.
func remounted(g v1alpha1.Group, template *corev1.PodTemplateSpec, has, wanted map[string]string) (*corev1.PodTemplateSpec, error) {
	from, err := ConfigMapName(g.GetName(), has)
	if err != nil {
		return nil, err
	}
	to, err := ConfigMapName(g.GetName(), wanted)
	if err != nil {
		return nil, err
	}
	out := template.DeepCopy()
	for i := range out.Spec.Volumes {
		if c := out.Spec.Volumes[i].ConfigMap; c != nil && c.Name == from {
			c.Name = to
		}
	}
	return out, nil
}

// retain sees to it that a member which may run with something else than its
// revision says runs with that: its process may have been started anew with the
// files of an older revision, or a change may have been taken back half way.
func (m *resident) retain(plan *Plan, s Snapshot, r Rendering) error {
	live, marks := m.live, given(m.live)
	if r.Settings == nil || m.taking || !Strays(live) {
		return nil
	}
	files, err := plan.stored(s)
	if err != nil {
		return err
	}
	own := files[m.kept.Spec.Revision]
	if _, ready := ReadySince(live); !ready || own == nil {
		m.keepGiven(marks)
		return nil
	}
	others := files.others(append(slices.Clone(marks), live.Status.MadeFrom)...)
	lacks := r.Settings.Given(live, others, own)
	if lacks.Stuck != "" && m.restart == "" {
		m.restart, m.again = lacks.Stuck, true
		m.wanted = m.kept.DeepCopy()
		m.wanted.Spec.StopPod = live.Status.PodUID
	}
	if lacks.Outcome.Kind != step.KindDone || lacks.Stuck != "" {
		m.keepGiven(marks)
		m.still(plan, lacks, Gift{Others: others, Wanted: own})
	}
	return nil
}
