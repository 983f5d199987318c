package group

import (
	"cmp"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A person may have a member lead nothing although it goes on running, by an
// annotation on its Instance. It is no disruption: no pod is stopped, no Lease is
// needed, and it stands while the member is restarted for something else. What is
// left in PD of it is known by the mark Evict, as of any disruption.

// Leading is implemented by a Component whose members lead, and can do without. All of
// it is pure.
type Leading interface {
	// Evict says how far a member is on its way to lead nothing because a person asks,
	// or to lead again because he does not any more.
	Evict(i *v1alpha1.Instance) Eviction
}

// Eviction is how far a member is on its way to lead nothing, or back.
type Eviction struct {
	// Calls to make now, unless something else is done to the member. Each is harmless
	// when repeated. Sweep has those that take it back.
	Calls []Call
	// Marked says that the Instance carries the mark, because something of this is or
	// will be left in the database.
	Marked bool
	// Done says that the member leads nothing.
	Done bool
	// Blocked says that it leads although it is not to, for nobody else can: a person
	// has to help.
	Blocked bool
	// Wait says what is waited for while it is not Done.
	Wait step.Outcome
}

// LeadsNothing reports whether a person wants the member of an Instance to lead
// nothing, and how he names that.
func LeadsNothing(i *v1alpha1.Instance) (request string, asked bool) {
	request, asked = i.Annotations[v1alpha1.AnnotationEvictLeaders]
	return cmp.Or(request, "true"), asked
}

// begun reports whether something was begun with a member that may stop it, or that
// has. That it leads nothing does not.
func begun(i *v1alpha1.Instance) bool {
	verb := Verb(i.Annotations[v1alpha1.AnnotationDisruption])
	return verb != "" && verb != Evict
}

// evict takes over how far a member is on its way to lead nothing. One that leaves
// has given its leaders away already; one that is being restarted does so by itself.
func (p *Plan) evict(g v1alpha1.Group, r Rendering, i *v1alpha1.Instance) Eviction {
	leading, able := r.Disrupt.(Leading)
	if !able {
		return Eviction{}
	}
	e := leading.Evict(i)
	verb, under := p.disrupted[i.Name]
	if g.GetComponentSpec().Suspended || verb == Remove {
		return Eviction{Marked: e.Marked && i.Annotations[v1alpha1.AnnotationDisruption] != ""}
	}
	// Who has just been chosen to be disrupted must not be given what others lead.
	if !under && p.Lease.Take == nil {
		p.Evictions = append(p.Evictions, e.Calls...)
	}
	request, asked := LeadsNothing(i)
	answered := asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] == request
	if !answered || e.Blocked {
		// Once it was so, a leader that comes and is sent away is no deviation.
		p.Evicting = step.Worst(p.Evicting, e.Wait)
	}
	if p.unanswered == "" && (asked && e.Done && !answered || !asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] != "") {
		p.unanswered = i.Name
	}
	return e
}

// pausedEvictions says what of this would be done in a paused group. It is no roll that
// others wait for.
func (p *Plan) pausedEvictions(message string) {
	switch {
	case p.Evicting.Kind == step.KindWait:
		message += "; next: " + p.Evicting.Message
	case p.unanswered != "":
		message += fmt.Sprintf("; next: annotation %s of Instance %s", v1alpha1.AnnotationLeadersEvicted, p.unanswered)
	default:
		return
	}
	p.Evicting = step.Wait("group", waitDeadline, v1alpha1.ReasonEvictingLeaders, message)
}

// answer tells on an Instance that its member has come to lead nothing. It stays
// until the request is gone, and what was done for it.
func answer(desired, live *v1alpha1.Instance, e Eviction) {
	request, asked := LeadsNothing(live)
	before := live.Annotations[v1alpha1.AnnotationLeadersEvicted]
	switch {
	case asked && e.Done:
		setAnnotation(desired, v1alpha1.AnnotationLeadersEvicted, request)
	case before != "" && (asked || desired.Annotations[v1alpha1.AnnotationDisruption] != ""):
		setAnnotation(desired, v1alpha1.AnnotationLeadersEvicted, before)
	}
}
