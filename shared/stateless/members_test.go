package stateless_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
)

// ranked are all ways in which a server may be when some are to be removed.
func ranked() map[string]*v1alpha1.Instance {
	out := map[string]*v1alpha1.Instance{}
	for _, life := range []string{"absent", "unreachable", "starts", "serves"} {
		for _, revision := range []string{"old", "new"} {
			for _, surge := range []string{"", "surge"} {
				i := &v1alpha1.Instance{}
				i.Spec.Revision, i.Status.PodUID = revision, "pod"
				set := conditions.New(nil, 0, time.Unix(0, 0))
				ready, reason := false, v1alpha1.ReasonPodNotReady
				switch life {
				case "absent":
					i.Status.PodUID, reason = "", v1alpha1.ReasonPodMissing
				case "unreachable":
					reason = v1alpha1.ReasonNodeUnreachable
				case "serves":
					ready, reason = true, v1alpha1.ReasonReady
				}
				if ready {
					set.MarkTrue(v1alpha1.ConditionReady, reason, "x")
					set.MarkTrue(v1alpha1.ConditionPodReady, v1alpha1.ReasonPodReady, "x")
				} else {
					set.MarkFalse(v1alpha1.ConditionReady, reason, "x")
					set.MarkFalse(v1alpha1.ConditionPodReady, reason, "x")
				}
				i.Status.Conditions = set.List()
				if surge != "" {
					i.Annotations = map[string]string{v1alpha1.AnnotationSurge: "true"}
				}
				out[fmt.Sprintf("%s %s %s", life, revision, surge)] = i
			}
		}
	}
	return out
}

func TestDB03TheLeastUsefulServerIsRemovedFirst(t *testing.T) {
	// The classes, the first to be removed first: every server is in the first one
	// that holds of it.
	classes := []func(life, revision, surge string) bool{
		func(life, _, _ string) bool { return life == "absent" },
		func(life, _, _ string) bool { return life == "unreachable" },
		func(life, _, _ string) bool { return life == "starts" },
		func(_, _, surge string) bool { return surge != "" },
		func(_, revision, _ string) bool { return revision == "old" },
		func(string, string, string) bool { return true },
	}
	all := ranked()
	assert.Len(t, all, 16)
	for name, i := range all {
		var life, revision, surge string
		_, _ = fmt.Sscan(name, &life, &revision, &surge)
		want := slices.IndexFunc(classes, func(is func(life, revision, surge string) bool) bool { return is(life, revision, surge) })
		assert.Equal(t, want, stateless.Members{}.Rank(component.Disruption{Instance: i, Verb: member.Remove, Revision: "new"}), name)
	}
}

// P7: kubelets that lose the API server make all servers unready, which go on serving.
// One of them alone may be replaced.
func TestServersOnUnreachableNodesAreNotAllStoppedAtOnce(t *testing.T) {
	unreachable := func(i *v1alpha1.Instance) {
		i.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable},
			{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable},
		}
	}
	serves := func(i *v1alpha1.Instance) {
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	for name, c := range map[string]struct {
		replicas int32
		are      []func(*v1alpha1.Instance)
		idle     bool
	}{
		"one of three":           {3, []func(*v1alpha1.Instance){unreachable, serves, serves}, true},
		"two of three":           {3, []func(*v1alpha1.Instance){unreachable, unreachable, serves}, false},
		"all":                    {3, []func(*v1alpha1.Instance){unreachable, unreachable, unreachable}, false},
		"the only one":           {1, []func(*v1alpha1.Instance){unreachable}, false},
		"one beside a surge":     {1, []func(*v1alpha1.Instance){unreachable, serves}, true},
		"one that serves is not": {2, []func(*v1alpha1.Instance){serves, serves}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiDBGroup{}
			g.Spec.Replicas = ptr.To(c.replicas)
			var seen []*v1alpha1.Instance
			for slot, be := range c.are {
				i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("db-%d", slot)}}
				be(i)
				seen = append(seen, i)
			}
			assert.Equal(t, c.idle, stateless.Members{Group: g, Seen: seen}.IsNotServing(seen[0]))
		})
	}
}
