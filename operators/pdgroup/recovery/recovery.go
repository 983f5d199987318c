package recovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Flag makes pd-server forget all members but itself: it makes a cluster of one
// member from the data that it has, and keeps the cluster ID and its own.
const Flag = "--force-new-cluster"

// suffix of the revision of an Instance that is started with Flag, which no
// other has.
const suffix = "-forced"

// IsActive reports whether PD is being rebuilt: nothing else is done to its members
// meanwhile.
func IsActive(g *v1alpha1.PDGroup) bool {
	return isUnderWay(g.Status.Recovery) && g.DeletionTimestamp == nil
}

func isUnderWay(r *v1alpha1.PDRecovery) bool { return r != nil && r.Phase != v1alpha1.RecoveryFinished }

// IsWanted reports whether PD is being rebuilt, or is asked to be.
func IsWanted(g *v1alpha1.PDGroup) bool {
	return isUnderWay(g.Status.Recovery) || g.Annotations[v1alpha1.AnnotationRecoverQuorum] != ""
}

// parseRequest splits a request into the member that it names and the cluster ID.
func parseRequest(request string) (survivor, clusterID string, ok bool) {
	survivor, clusterID, ok = strings.Cut(request, "/")
	return survivor, clusterID, ok && survivor != "" && clusterID != "" && !strings.Contains(clusterID, "/")
}

// IsAlone reports whether PD answers with one member, which leads and is healthy,
// and with the cluster ID of the group.
func IsAlone(g *v1alpha1.PDGroup, view pd.View, name string) bool {
	return view.Err == nil && view.ClusterID == g.Status.ClusterID && view.Leader == name &&
		len(view.Members) == 1 && view.Members[0].Name == name && view.Members[0].Healthy
}

// FindRunning says which Instance keeps the survivor from being started with Flag,
// because its pod may run or may still be made; empty if none does. An Instance
// that has seen that it is suspended, and has no pod, will not have one.
func FindRunning(g *v1alpha1.PDGroup, instances []*v1alpha1.Instance) string {
	for _, i := range instances {
		if i.UID != g.Status.Recovery.Survivor.UID && !member.IsAtRest(i) {
			return i.Name
		}
	}
	return ""
}

// IsForced reports whether an Instance is to run with Flag.
func IsForced(i *v1alpha1.Instance) bool { return strings.HasSuffix(i.Spec.Revision, suffix) }

// startsForced reports whether an Instance is started with Flag already: its pod may be
// at any moment.
func startsForced(i *v1alpha1.Instance) bool { return IsForced(i) && !i.Spec.Suspended }

// findInstance returns the Instance that a record means, nil if it is gone.
func findInstance(s observation.Snapshot, m v1alpha1.PDRecoveryMember) *v1alpha1.Instance {
	if i := s.Instance(m.Name); i != nil && i.UID == m.UID {
		return i
	}
	return nil
}

func newRecord(i *v1alpha1.Instance) v1alpha1.PDRecoveryMember {
	return v1alpha1.PDRecoveryMember{Name: i.Name, UID: i.UID}
}

func isDiscarded(r *v1alpha1.PDRecovery, i *v1alpha1.Instance) bool {
	return slices.Contains(r.Discarded, newRecord(i))
}

// setForced changes an Instance into one that runs with Flag, or without. It gets a
// revision of its own, so that status shows what the pod runs.
func setForced(i *v1alpha1.Instance, on bool) error {
	if IsForced(i) == on {
		return nil
	}
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(i.Spec.PodTemplate.Raw, &template); err != nil {
		return fmt.Errorf("decode the template of Instance %s: %w", i.Name, err)
	}
	for n := range template.Spec.Containers {
		c := &template.Spec.Containers[n]
		if c.Name != v1alpha1.ComponentPD {
			continue
		}
		c.Args = slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return arg == Flag })
		if on {
			c.Args = append(c.Args, Flag)
		}
	}
	raw, err := json.Marshal(template)
	if err != nil {
		return fmt.Errorf("encode the template of Instance %s: %w", i.Name, err)
	}
	i.Spec.PodTemplate = runtime.RawExtension{Raw: raw}
	i.Spec.Revision = strings.TrimSuffix(i.Spec.Revision, suffix)
	if on {
		i.Spec.Revision += suffix
	}
	return nil
}
