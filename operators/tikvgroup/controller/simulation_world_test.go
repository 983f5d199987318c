package controller

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// storeDownAfter is after how long PD calls a store Down that is Disconnected.
const storeDownAfter = 30 * time.Minute

// viewPD is what PD answers now. Stores are changed in place, so it is a copy.
func (m *simulation) viewPD() pd.View {
	if m.pdDown {
		return pd.View{Err: errors.New("PD does not answer")}
	}
	v := m.actual.PD
	v.Stores, v.EvictLeader = slices.Clone(v.Stores), slices.Clone(v.EvictLeader)
	return v
}

// findStore returns a store that PD lists, nil if it lists none of that ID.
func (m *simulation) findStore(id string) *pd.Store {
	at := slices.IndexFunc(m.actual.PD.Stores, func(s pd.Store) bool { return s.ID == id })
	if at < 0 {
		return nil
	}
	return &m.actual.PD.Stores[at]
}

// countStores counts the stores that are so.
func (m *simulation) countStores(isCounted func(pd.Store) bool) (n int) {
	for _, s := range m.actual.PD.Stores {
		if isCounted(s) {
			n++
		}
	}
	return n
}

// deleteStore makes a store Offline if enough stores stay.
func (m *simulation) deleteStore(store *pd.Store) error {
	if store.State == pd.StateOffline {
		return nil
	}
	if m.countStores(func(s pd.Store) bool { return s.State != pd.StateOffline })-1 < m.actual.PD.MaxReplicas {
		return errors.New("too few stores would stay")
	}
	store.State, store.NotUpSince = pd.StateOffline, time.Time{}
	return nil
}

// disconnectStore is what PD says of an Instance's store that does not answer any more.
func (m *simulation) disconnectStore(name string) {
	if s := m.findStore(m.claims[name]); s != nil && s.State == pd.StateUp {
		s.State, s.NotUpSince = pd.StateDisconnected, m.now
	}
}

// advancePD moves leaders, and removes stores that are Offline and whose regions find a place.
func (m *simulation) advancePD() {
	up := m.countStores(func(s pd.Store) bool { return s.State == pd.StateUp })
	var stay []pd.Store
	for _, s := range m.actual.PD.Stores {
		switch {
		case s.State == pd.StateOffline && up >= m.actual.PD.MaxReplicas && m.hasLuck(m.chances.leave):
			m.addStep("store %s is a Tombstone", s.ID)
			continue
		case s.State == pd.StateDisconnected && m.now.Sub(s.NotUpSince) > storeDownAfter:
			s.State = pd.StateDown
		case slices.Contains(m.actual.PD.EvictLeader, s.ID), s.State != pd.StateUp:
			s.Leaders = 0
		default:
			s.Leaders = 10
		}
		stay = append(stay, s)
	}
	m.actual.PD.Stores = stay
}

// setCondition sets a condition, whose time changes with its status only.
func (m *simulation) setCondition(i *v1alpha1.Instance, kind string, ok bool, reason string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "simulated", ObservedGeneration: i.Generation, LastTransitionTime: metav1.NewTime(m.now)}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	if old := meta.FindStatusCondition(i.Status.Conditions, kind); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	replaceCondition(i, c)
}

// operateInstance lets the instance operator look at an Instance, and its pod go on.
func (m *simulation) operateInstance(n int) {
	i := m.actual.Instances[n]
	if i.DeletionTimestamp != nil && !member.HasMemberFinalizer(i) {
		m.finishDeletion(i)
		return
	}
	m.editInstance(i.Name, func(i *v1alpha1.Instance) {
		i.Status.ObservedGeneration = i.Generation
		m.advancePod(i)
		m.reportReady(i)
	})
}

// finishDeletion ends an Instance. The claim of a member that has left is not used again.
func (m *simulation) finishDeletion(i *v1alpha1.Instance) {
	m.addStep("Instance %s has gone, drained %v", i.Name, member.IsDrained(i))
	m.disconnectStore(i.Name)
	if member.IsDrained(i) {
		m.requireStoreLeft(i)
		if m.actual.RetiredSlots == nil {
			m.actual.RetiredSlots = map[int32]bool{}
		}
		m.actual.RetiredSlots[i.Spec.Slot] = true
		delete(m.claims, i.Name)
	}
	m.removeInstance(i.Name)
}

// isStopPending reports whether a pod is to be stopped or recreated.
func isStopPending(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" && (i.Status.Revision != i.Spec.Revision || i.Spec.StopPod == i.Status.PodUID)
}

// advancePod stops the pod, creates one, or lets the one that there is run.
func (m *simulation) advancePod(i *v1alpha1.Instance) {
	running, pending := i.Status.PodUID != "", isStopPending(i)
	switch {
	case running && (i.Spec.Suspended || pending && m.hasLuck(2)):
		m.stopPod(i)
	case pending, !running && i.Spec.Suspended:
	case !running:
		m.serial++
		i.Status.PodUID, i.Status.NodeName, i.Status.Revision = types.UID(fmt.Sprint("pod", m.serial)), "n1", i.Spec.Revision
		m.setCondition(i, v1alpha1.ConditionPodReady, false, v1alpha1.ReasonPodNotReady)
	case m.now.Before(m.unreachable[i.Name]):
		m.disconnectStore(i.Name)
		m.setCondition(i, v1alpha1.ConditionPodReady, false, v1alpha1.ReasonNodeUnreachable)
	default:
		m.runStore(i)
	}
}

// stopPod ends the pod of an Instance.
func (m *simulation) stopPod(i *v1alpha1.Instance) {
	m.addStep("pod of %s stops", i.Name)
	m.disconnectStore(i.Name)
	i.Status.PodUID, i.Status.NodeName, i.Status.PodIP = "", "", ""
	m.setCondition(i, v1alpha1.ConditionPodReady, false, v1alpha1.ReasonPodMissing)
}

// runStore is what TiKV does in its pod: an empty claim becomes a new store, and PD refuses a store
// that has left.
func (m *simulation) runStore(i *v1alpha1.Instance) {
	id := m.claims[i.Name]
	s := m.findStore(id)
	switch {
	case id == "":
		m.registerStore(i)
	case s == nil:
		m.setCondition(i, v1alpha1.ConditionPodReady, false, v1alpha1.ReasonContainerCrashing)
		return
	case s.State == pd.StateDisconnected || s.State == pd.StateDown:
		s.State, s.NotUpSince = pd.StateUp, time.Time{}
	}
	m.setCondition(i, v1alpha1.ConditionPodReady, true, v1alpha1.ReasonPodReady)
}

// registerStore has PD list the store of an empty claim.
func (m *simulation) registerStore(i *v1alpha1.Instance) {
	m.serial++
	id := strconv.Itoa(100 + m.serial)
	m.claims[i.Name], m.actual.PD.Bootstrapped = id, true
	m.actual.PD.Stores = append(m.actual.PD.Stores, pd.Store{ID: id, State: pd.StateUp, Started: true, Leaders: 10, Regions: 30,
		Address: i.Name + ".basic-tikv-peer.shop.svc:20160", Labels: map[string]string{"disk": "ssd", "zone": fmt.Sprintf("z%d", i.Spec.Slot%3)}})
	m.addStep("Instance %s registers store %s", i.Name, id)
}

// reportReady sets the conditions that follow from others.
func (m *simulation) reportReady(i *v1alpha1.Instance) {
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(i.Status.Conditions, kind) }
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	ok := isTrue(v1alpha1.ConditionPodReady) && isTrue(v1alpha1.ConditionJoined) && isTrue(v1alpha1.ConditionHealthy)
	reason := v1alpha1.ReasonReady
	switch {
	case i.Spec.Suspended && i.Status.PodUID == "":
		ok, reason = false, v1alpha1.ReasonSuspended
	case pod != nil && pod.Status != metav1.ConditionTrue:
		reason = pod.Reason
	case !ok:
		reason = v1alpha1.ReasonGatesPending
	}
	m.setCondition(i, v1alpha1.ConditionReady, ok, reason)
	if isStopPending(i) {
		m.setCondition(i, v1alpha1.ConditionUpToDate, false, v1alpha1.ReasonProgressing)
		return
	}
	m.setCondition(i, v1alpha1.ConditionUpToDate, true, v1alpha1.ReasonUpToDate)
}

// listEvents lists what users, nodes and PD do. What is there more than once happens more often.
func (m *simulation) listEvents() []func() {
	return []func(){
		m.editReplicas, m.editReplicas, m.editReplicas,
		m.editVersion, m.editVersion,
		m.editSuspended, m.editPaused, m.editParallelism, m.editDisruption,
		m.deleteAnInstance, m.deleteAnInstance,
		func() { m.annotateInstance(v1alpha1.AnnotationReplace, "") },
		func() { m.annotateInstance(v1alpha1.AnnotationRemoveFirst, "true") },
		func() { m.annotateInstance(v1alpha1.AnnotationEvictLeaders, "x") },
		func() { m.annotateInstance(v1alpha1.AnnotationRestart, fmt.Sprint("r", m.serial)) },
		m.loseNode, m.killPod, m.restoreStores, m.changePDLeader, m.togglePD,
	}
}

// playEvent lets one of them happen.
func (m *simulation) playEvent() {
	m.group = m.group.DeepCopy()
	m.group.Generation++
	m.events[m.random.IntN(len(m.events))]()
}

// drawInstance returns any Instance, nil if there is none.
func (m *simulation) drawInstance() *v1alpha1.Instance {
	if len(m.actual.Instances) == 0 {
		return nil
	}
	return m.actual.Instances[m.random.IntN(len(m.actual.Instances))]
}

func (m *simulation) editReplicas() {
	m.group.Spec.Replicas = ptr.To(int32(2 + m.random.IntN(5))) //nolint:gosec // a few
	m.addStep("a user sets replicas: %d", *m.group.Spec.Replicas)
}

func (m *simulation) editVersion() {
	m.group.Spec.Version = []string{"v1", "v2"}[m.random.IntN(2)]
	m.addStep("a user sets version: %s", m.group.Spec.Version)
}

func (m *simulation) editSuspended() {
	m.group.Spec.Suspended = !m.group.Spec.Suspended
	m.addStep("a user sets suspended: %v", m.group.Spec.Suspended)
}

func (m *simulation) editPaused() {
	m.group.Spec.Paused = !m.group.Spec.Paused
	m.addStep("a user sets paused: %v", m.group.Spec.Paused)
}

func (m *simulation) editParallelism() {
	m.group.Spec.ScaleInParallelism = ptr.To(int32(1 + m.random.IntN(3))) //nolint:gosec // a few
	m.addStep("a user sets scaleInParallelism: %d", *m.group.Spec.ScaleInParallelism)
}

func (m *simulation) editDisruption() {
	if m.group.Spec.Disruption != nil {
		m.group.Spec.Disruption = nil
		m.addStep("a user removes disruption")
		return
	}
	d := &v1alpha1.Disruption{Paused: m.hasLuck(2)}
	if m.hasLuck(2) {
		d.UpdateAtMost = ptr.To(int32(m.random.IntN(3))) //nolint:gosec // a few
	}
	m.group.Spec.Disruption = d
	m.addStep("a user sets disruption: paused %v, updateAtMost %d", d.Paused, ptr.Deref(d.UpdateAtMost, -1))
}

// deleteAnInstance deletes any Instance, or the one that is being restarted or removed: users delete
// what seems to hang.
func (m *simulation) deleteAnInstance() {
	i := m.drawInstance()
	if holder := m.actual.Instance(m.actual.Lease.Holder.Instance); holder != nil && m.hasLuck(2) {
		i = holder
	}
	if i != nil && i.DeletionTimestamp == nil {
		m.addStep("a user deletes Instance %s", i.Name)
		m.editInstance(i.Name, m.markDeleted)
	}
}

// annotateInstance adds an annotation to an Instance, or removes it.
func (m *simulation) annotateInstance(key, value string) {
	drawn := m.drawInstance()
	if drawn == nil {
		return
	}
	m.editInstance(drawn.Name, func(i *v1alpha1.Instance) {
		if _, set := i.Annotations[key]; set {
			delete(i.Annotations, key)
			m.addStep("a user removes annotation %s of %s", key, i.Name)
			return
		}
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, value)
		m.addStep("a user sets annotation %s of %s", key, i.Name)
	})
}

func (m *simulation) loseNode() {
	if i := m.drawInstance(); i != nil {
		m.unreachable[i.Name] = m.now.Add(time.Duration(m.random.IntN(200)) * time.Second)
		m.addStep("the node of %s does not answer until %s", i.Name, m.unreachable[i.Name].Format(time.TimeOnly))
	}
}

func (m *simulation) killPod() {
	if i := m.drawInstance(); i != nil {
		m.addStep("the pod of %s is deleted", i.Name)
		m.editInstance(i.Name, m.stopPod)
	}
}

// restoreStores takes the removal of some stores back, as a user may with pd-ctl.
func (m *simulation) restoreStores() {
	for n := range m.actual.PD.Stores {
		if s := &m.actual.PD.Stores[n]; s.State == pd.StateOffline && m.hasLuck(2) {
			s.State, s.NotUpSince = pd.StateDisconnected, m.now
			m.addStep("a user restores store %s", s.ID)
		}
	}
}

// changePDLeader makes all stores Disconnected: a new leader of PD has not heard of them.
func (m *simulation) changePDLeader() {
	m.addStep("PD has a new leader")
	for n := range m.actual.PD.Stores {
		if s := &m.actual.PD.Stores[n]; s.State == pd.StateUp {
			s.State, s.NotUpSince = pd.StateDisconnected, m.now
		}
	}
}

func (m *simulation) togglePD() {
	m.pdDown = !m.pdDown
	m.addStep("PD is down: %v", m.pdDown)
}
