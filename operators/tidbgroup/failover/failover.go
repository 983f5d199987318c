package failover

import (
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// failedOver is the value of the annotation on servers that are stood in for.
const failedOver = "true"

// Missing is how many servers are to be added for those that do not serve.
type Missing struct {
	// Count of the servers to be added.
	Count int32
	// servers that are stood in for, by Instance.
	servers map[string]bool
	// next is when one more or one less may have to be there; 0 if nothing is
	// expected.
	next time.Duration
	// back says of a server that is stood in for and serves again how that ends;
	// empty if there is none.
	back string
}

// FindMissing finds the servers that have not served for as long as spec.failover
// says, and those of them that serve again and have not for as long: one that
// crashes again and again has one server in its place, and not a new one each
// time. Only the oldest spec.replicas servers count: those beyond are additions
// themselves.
func FindMissing(g *v1alpha1.TiDBGroup, s observation.Snapshot) Missing {
	out := Missing{servers: map[string]bool{}}
	f := g.Spec.Failover
	if f == nil || g.Spec.Suspended {
		return out
	}
	own := g.GetReplicas()
	for _, i := range s.Instances {
		if i.DeletionTimestamp != nil {
			continue
		}
		if own--; own < 0 {
			break
		}
		serves, before := member.WasReady(i), i.Annotations[v1alpha1.AnnotationFailedOver] != ""
		if serves && !before || out.Count >= f.Max {
			continue
		}
		if member.IsSuspended(i) {
			continue
		}
		left := f.After.Duration - s.Now.Sub(member.ReadyOrNotSince(i))
		if serves && left <= 0 {
			continue
		}
		if before || left <= 0 {
			out.Count++
			out.servers[i.Name] = true
		}
		if serves {
			out.back = fmt.Sprintf("Instance %s was failed over and serves again: its replacement is removed once it has served for %s", i.Name, f.After.Duration)
		}
		if left > 0 && (serves || !before) && (out.next == 0 || left < out.next) {
			out.next = left
		}
	}
	return out
}

// Mark writes on the servers that are stood in for that they are.
func (f Missing) Mark(changes []planning.InstanceChange) {
	for _, c := range changes {
		if c.Live == nil || c.Live.DeletionTimestamp != nil || !f.servers[c.Live.Name] {
			continue
		}
		if c.Desired.Annotations == nil {
			c.Desired.Annotations = map[string]string{}
		}
		c.Desired.Annotations[v1alpha1.AnnotationFailedOver] = failedOver
	}
}

// Wake has the group looked at again when a server has been missed, or has served
// again, for long enough: nothing else tells.
func (f Missing) Wake(o step.Outcome) step.Outcome {
	switch {
	case f.next <= 0:
		return o
	case o.Kind != step.KindDone:
		return step.Worst(o, step.RetryAfter(f.next, o.Reason, o.Message))
	case f.back != "":
		return step.Wait("Instance", f.next, v1alpha1.ReasonRecovering, f.back)
	}
	return o
}
