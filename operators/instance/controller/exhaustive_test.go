package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/podtemplate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// state is one state of the enumeration. Its parts are words, so that a failure
// reads as a sentence.
type state struct {
	pod        string
	claims     []claimState
	finalizers string
	deleting   bool
	flags      []string
}

// claimState is what there is of a volume's claim, and which one is recorded.
type claimState struct{ claim, recorded string }

func (s state) String() string {
	var claims []string
	for _, c := range s.claims {
		claims = append(claims, c.claim+" (recorded: "+c.recorded+")")
	}
	return fmt.Sprintf("pod %s, claims [%s], finalizers %q, deleting %v, %s", s.pod, strings.Join(claims, ", "), s.finalizers, s.deleting, strings.Join(s.flags, " "))
}

func (s state) has(flag string) bool { return slices.Contains(s.flags, flag) }

// The words. A pod is the Instance's own, an orphan of its name and labels, or
// foreign; "stale" pods differ from the spec so that they need a restart,
// "relabelled" ones so that they do not, and "asked" ones are named by
// spec.stopPod.
func allPods() []string {
	return []string{
		"absent", "foreign", "own running", "own running stale", "own running relabelled", "own running asked", "own unscheduled", "own unscheduled stale",
		"own failed", "own terminating", "orphan running", "orphan running stale", "orphan running asked", "orphan failed", "orphan terminating",
	}
}

func allClaims() []claimState {
	out := []claimState{{"absent", "none"}, {"absent", "another"}}
	for _, claim := range []string{"bound", "pending", "pending of another class", "terminating", "foreign", "retired", "without its volume"} {
		for _, recorded := range []string{"none", "this", "another"} {
			out = append(out, claimState{claim, recorded})
		}
	}
	return out
}

// alive and dying are the finalizers of an Instance that stays and of one that
// is being deleted: I the instance operator's, M the group operator's, O and F
// Kubernetes' own for orphaning and for a foreground deletion, X another
// owner's. G is none: it says that the group is gone.
func alive() []string { return []string{"", "I", "IM"} }
func dying() []string { return []string{"I", "M", "MG", "IM", "IMG", "IO", "IF", "IMF", "IMO", "X"} }

// subsets returns every subset of flags.
func subsets(flags ...string) [][]string {
	out := [][]string{nil}
	for _, flag := range flags {
		for _, set := range slices.Clone(out) {
			out = append(out, append(slices.Clone(set), flag))
		}
	}
	return out
}

// space is one part of the enumeration: the product of its parts.
type space struct {
	name       string
	pods       []string
	claims     [][]claimState
	finalizers []string
	deleting   bool
	flags      [][]string
}

func (s space) size() int {
	return len(s.pods) * len(s.claims) * len(s.finalizers) * len(s.flags)
}

func (s space) each(visit func(state)) {
	for _, pod := range s.pods {
		for _, claims := range s.claims {
			for _, finalizers := range s.finalizers {
				for _, flags := range s.flags {
					visit(state{pod, claims, finalizers, s.deleting, flags})
				}
			}
		}
	}
}

func spaces() []space {
	one := [][]claimState{nil}
	var two [][]claimState
	for _, a := range allClaims() {
		one = append(one, []claimState{a})
		for _, b := range allClaims() {
			two = append(two, []claimState{a, b})
		}
	}
	few := []string{"absent", "own running", "own running stale", "own failed"}
	return []space{
		{"no volume or one, alive", allPods(), one, alive(), false, subsets("paused", "suspended", "invalid", "recreate", "classless", "retire")},
		{"no volume or one, being deleted", allPods(), one, dying(), true, subsets("paused", "suspended", "invalid", "retire", "drained", "whenDeleted", "whenScaled")},
		{"two volumes, alive", few, two, []string{"I"}, false, subsets("suspended", "recreate")},
		{"two volumes, being deleted", few, two, []string{"I", "IM"}, true, subsets("suspended", "recreate", "whenDeleted")},
		{"unreadable", allPods(), one, alive(), false, subsets("unreadable", "paused", "suspended")},
	}
}

// stock holds the objects that states are made of, which no plan may change.
type stock struct {
	instance  *v1alpha1.Instance
	template  *corev1.PodTemplateSpec
	pods      map[string]*corev1.Pod
	claims    [2]map[string]*corev1.PersistentVolumeClaim
	templates []v1alpha1.VolumeClaimTemplate
	world     *observation.Snapshot
}

func newStock(t *testing.T) *stock {
	t.Helper()
	w := world(t)
	k := &stock{instance: w.Instance, template: w.Template, world: w, pods: map[string]*corev1.Pod{}}
	for _, name := range []string{"data", "raft"} {
		k.templates = append(k.templates, v1alpha1.VolumeClaimTemplate{Name: name, Storage: resource.MustParse("1Gi"), StorageClassName: ptr.To("fast")})
	}
	for _, name := range allPods() {
		k.pods[name] = k.pod(t, name)
	}
	for at := range k.claims {
		k.claims[at] = map[string]*corev1.PersistentVolumeClaim{}
		for _, c := range allClaims() {
			k.claims[at][c.claim] = k.claim(at, c.claim)
		}
	}
	return k
}

func (k *stock) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	if name == "absent" {
		return nil
	}
	var changes []func(*observation.Snapshot)
	switch {
	case strings.HasSuffix(name, "stale"):
		changes = append(changes, respelled(image("pingcap/pd:v8.5.6")))
	case strings.HasSuffix(name, "relabelled"):
		changes = append(changes, respelled(label("team", "green")))
	}
	other := world(t, changes...)
	old := other.Instance
	if len(changes) > 0 {
		old.Spec.Revision = "r0"
	}
	pod, err := podtemplate.Render(old, other.Template)
	assert.NoError(t, err)
	pod.UID, pod.Spec.NodeName, pod.Status = "pod-uid", "n1", *k.world.Pod.Status.DeepCopy()
	switch words := strings.Fields(name); {
	case name == "foreign":
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)}}
	case words[1] == "unscheduled":
		pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	case words[1] == "failed":
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	case words[1] == "terminating":
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	if strings.HasPrefix(name, "orphan") {
		pod.OwnerReferences = nil
	}
	return pod
}

func (k *stock) claim(at int, name string) *corev1.PersistentVolumeClaim {
	if name == "absent" {
		return nil
	}
	c := volumeclaim.Render(k.instance, k.template, k.templates[at])
	c.UID, c.Spec.VolumeName = types.UID(fmt.Sprintf("claim-%d", at)), "pv"
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}
	switch name {
	case "pending", "pending of another class":
		c.Spec.VolumeName, c.Status.Phase = "", corev1.ClaimPending
		if name != "pending" {
			c.Spec.StorageClassName = ptr.To("slow")
		}
	case "terminating":
		c.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	case "foreign":
		c.Labels = map[string]string{v1alpha1.LabelManagedBy: "helm"}
	case "retired":
		c.Annotations = map[string]string{v1alpha1.AnnotationRetired: "scaled in"}
	case "without its volume":
		c.Status.Phase = corev1.ClaimLost
	}
	return c
}

// snapshot makes a state.
func (k *stock) snapshot(st state) *observation.Snapshot {
	i := &v1alpha1.Instance{TypeMeta: k.instance.TypeMeta, ObjectMeta: k.instance.ObjectMeta, Spec: k.instance.Spec}
	i.Finalizers = nil
	words := map[rune]string{
		'I': v1alpha1.FinalizerInstance, 'M': v1alpha1.FinalizerMember, 'O': metav1.FinalizerOrphanDependents,
		'F': metav1.FinalizerDeleteDependents, 'X': "example.com/x",
	}
	for _, letter := range strings.TrimSuffix(st.finalizers, "G") {
		i.Finalizers = append(i.Finalizers, words[letter])
	}
	if strings.HasSuffix(st.pod, "asked") {
		i.Spec.StopPod = k.pods[st.pod].UID
	}
	if st.deleting {
		i.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	i.Spec.Paused, i.Spec.Suspended, i.Spec.Retire = st.has("paused"), st.has("suspended"), st.has("retire")
	if st.has("recreate") {
		i.Spec.ClaimLoss = v1alpha1.RecreateLostClaim
	}
	if st.has("whenDeleted") {
		i.Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim
	}
	if st.has("whenScaled") {
		i.Spec.ClaimRetention.WhenScaled = v1alpha1.DeleteClaim
	}
	if st.has("drained") {
		i.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMemberLeft, Message: "it has left",
			ObservedGeneration: i.Generation, LastTransitionTime: metav1.NewTime(clock()),
		}}
	}
	i.Spec.VolumeClaimTemplates = k.templates[:len(st.claims)]
	s := &observation.Snapshot{Instance: i, Pod: k.pods[st.pod], Template: k.template, Classes: k.world.Classes, Ownerless: strings.HasSuffix(st.finalizers, "G")}
	if st.has("classless") {
		s.Classes = nil
	}
	if st.has("invalid") {
		s.Template, s.TemplateErr = nil, errors.New("unknown field")
	}
	for at, c := range st.claims {
		v := observation.Volume{Template: k.templates[at], Name: names.Claim(k.templates[at].Name, i.Name), Claim: k.claims[at][c.claim]}
		switch c.recorded {
		case "this":
			v.Recorded = v.Claim.UID
		case "another":
			v.Recorded = "lost"
		}
		s.Volumes = append(s.Volumes, v)
		i.Status.Volumes = append(i.Status.Volumes, v1alpha1.VolumeStatus{Name: v.Template.Name, ClaimName: v.Name, ClaimUID: v.Recorded})
	}
	if st.has("unreadable") {
		*s = observation.Snapshot{Instance: i, Err: errors.New("timeout")}
	}
	return s
}

// complaints bounds what a test says about a rule that is broken everywhere.
const complaints = 20

// TestEveryStateIsPlannedSafely holds the plan and the report of every state to
// what must be true of all of them.
func TestEveryStateIsPlannedSafely(t *testing.T) {
	k := newStock(t)
	untouched := newStock(t)
	total, broken := 0, 0
	for _, space := range spaces() {
		checked, bad := 0, 0
		reported := newStatuses()
		space.each(func(st state) {
			checked++
			s := k.snapshot(st)
			p := makePlan(s)
			wrong := unsafeIn(s, p)
			if !st.has("whenDeleted") && !st.has("whenScaled") { // of which a report says nothing
				wrong = append(wrong, reported.wrong(s, p, reportStatus(s, p, step.Done(), clock()))...)
			}
			if len(wrong) == 0 {
				return
			}
			if bad++; bad <= complaints {
				t.Errorf("%s: plan %q, %s: %s", st, actions(p), p.Outcome.Reason, strings.Join(wrong, "; "))
			}
		})
		assert.Equal(t, space.size(), checked)
		assert.Zero(t, bad, "states of %q against a rule", space.name)
		t.Logf("%s: %d states of pod × claims × records × finalizers × flags, %d statuses", space.name, checked, len(reported.seen))
		total, broken = total+checked, broken+bad
	}
	assert.Equal(t, untouched, k, "a plan changed what it looked at")
	fmt.Printf("exhaustive: Instance: %d states planned and reported, %d of them against a rule\n", total, broken)
}
