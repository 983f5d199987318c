package controller

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// States of a TiDB server, as an Instance shows them.
const (
	stateServing  = "Serving"
	stateStarting = "Starting"
)

// report computes the status of a TiDBGroup. It is pure.
func report(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.TiDBGroupStatus, *conditions.Set) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	if p.Dependencies.Open || p.Dependencies.Lagging && set.Was(v1alpha1.ConditionDependenciesReady) {
		set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonDependenciesReady, "PDGroup "+g.PDGroupName()+" and a TiKVGroup of it are Ready")
	} else {
		set.False(v1alpha1.ConditionDependenciesReady, p.DependencyReason, p.Dependencies.Message)
	}
	// One server that answers is a service; how many do is for UpToDate.
	serving := slices.ContainsFunc(s.Instances, member.WasReady)
	status := v1alpha1.TiDBGroupStatus{
		GroupStatus: groupstatus.Report(g, s.Snapshot, p.Plan, outcome, set, serving),
		Endpoint:    endpoint(g, s),
		Upgrade:     p.Upgrade,
		SQL:         p.SQL.Status,
	}
	return status, set
}

// end says how the reconcile ends.
func end(p groupPlan, acted step.Outcome) step.Outcome {
	out := step.Worst(acted, p.Outcome, p.SQLOutcome)
	if p.SQL.Wake > 0 {
		out = step.Worst(out, step.After(p.SQL.Wake, "", ""))
	}
	return out
}

// endpoint is where MySQL clients connect to: the load balancer's address if
// there is one, else the Service's name.
func endpoint(g *v1alpha1.TiDBGroup, s snapshot) string {
	port := workload.ServicePortNumber(g.Spec.Service, ports()[0])
	if service := s.Services[g.Name]; service != nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range service.Status.LoadBalancer.Ingress {
			if host := in.Hostname + in.IP; host != "" {
				return names.HostPort(host, port)
			}
		}
	}
	return fmt.Sprintf("%s:%d", names.ServiceHost(g.Name, g.Namespace, g.Spec.ClusterDomain), port)
}

// members reports every Instance's server. TiDB keeps no membership: a server
// serves when its readiness probe says so, and leaves when it is told to.
func members(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	var out []groupstatus.Member
	for _, i := range s.Instances {
		set := conditions.New(i.Status.Conditions, i.Generation, now)
		switch {
		case p.Drained[i.Name]:
			set.True(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, "nothing depends on the server: it drains its connections as it stops")
		case meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionDrained) != nil:
			set.False(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, "the server stays")
		}
		state := stateStarting
		if c := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady); c != nil && c.Status == "True" {
			state = stateServing
		}
		out = append(out, groupstatus.Member{Instance: i, Conditions: set.List(), Status: &v1alpha1.MemberStatus{
			Name: i.Name, State: state,
			Address: fmt.Sprintf("%s:%d", names.PodHost(i.Name, g.Name, g.Namespace, g.Spec.ClusterDomain), v1alpha1.PortTiDB),
		}})
	}
	return out
}
