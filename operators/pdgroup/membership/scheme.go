package membership

import (
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// PD's members reach each other at URLs that its etcd keeps. One that starts with another
// scheme does not change them, and members that start so do not find each other
// (TestSEC01ARealPDChangesItsSchemeWhileItIsStoppedIfItsPeersKnowBoth). So the scheme
// changes while the group is suspended: each member gets a URL of either scheme, all pods
// stop, they start with the new scheme, and the old URLs are removed.

// PeerURLs are those that a member is to have.
type PeerURLs struct {
	// ID and Name of the member.
	ID, Name string
	// URLs; the others try the first one first.
	URLs []string
}

// Schemes names those of the URLs.
func (p PeerURLs) Schemes() string {
	var out []string
	for _, url := range p.URLs {
		out = append(out, schemeOf(url))
	}
	return strings.Join(out, " and ")
}

// Scheme returns the scheme that the members listen with, and that is to be recorded.
func Scheme(g *v1alpha1.PDGroup, s observation.Snapshot) string {
	if now := v1alpha1.PDScheme(g); IsSwitching(g) && (!haveStopped(g, s) || !mayStartOtherwise(g, s)) {
		return now
	}
	return v1alpha1.SpecScheme(g)
}

// IsSwitching reports whether the spec wants another scheme than the members listen with.
func IsSwitching(g *v1alpha1.PDGroup) bool { return v1alpha1.PDScheme(g) != v1alpha1.SpecScheme(g) }

// mayStartOtherwise reports whether members that have stopped find each other when they
// start with the other scheme: as PD was ordered, or because there is no PD yet.
func mayStartOtherwise(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	return g.Status.PeersHaveBothSchemes || !bootstrap.IsBootstrapped(g, s) && len(OwnInstances(g, s)) == 0
}

// haveStopped reports whether no member's pod runs or is made any more.
func haveStopped(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	return !slices.ContainsFunc(OwnInstances(g, s), func(i *v1alpha1.Instance) bool { return !member.IsAtRest(i) })
}

// HaveBothSchemes reports whether PD lists a URL of either scheme of each member. While PD
// does not say, what it has said last counts.
func HaveBothSchemes(g *v1alpha1.PDGroup, s observation.Snapshot) bool {
	if !MayTrustAnswer(g, s).IsAllowed() {
		return g.Status.PeersHaveBothSchemes
	}
	return !slices.ContainsFunc(s.PD.Members, func(m pd.Member) bool {
		return schemeOf(m.OtherPeerURL) == "" || schemeOf(m.PeerURL) == schemeOf(m.OtherPeerURL)
	})
}

func schemeOf(url string) string {
	scheme, _, found := strings.Cut(url, "://")
	if !found {
		return ""
	}
	return scheme
}

// WrongPeerURLs returns the members whose URLs are to be changed: those that lack one of the
// other scheme before a suspended group stops, and those that have one too many when it is
// back.
func WrongPeerURLs(g *v1alpha1.PDGroup, s observation.Snapshot) []PeerURLs {
	if !MayTrustAnswer(g, s).IsAllowed() || IsSwitching(g) != g.Spec.Suspended || IsSwitching(g) && !othersSwitch(g, s).IsAllowed() {
		return nil
	}
	var out []PeerURLs
	for _, m := range s.PD.Members {
		_, at, found := strings.Cut(m.PeerURL, "://")
		if !found {
			continue
		}
		wanted := []string{v1alpha1.PDScheme(g) + "://" + at}
		if IsSwitching(g) {
			wanted = append(wanted, v1alpha1.SpecScheme(g)+"://"+at)
		}
		has := slices.DeleteFunc([]string{m.PeerURL, m.OtherPeerURL}, func(url string) bool { return url == "" })
		if !slices.Equal(has, wanted) {
			out = append(out, PeerURLs{ID: m.ID, Name: PodName(g, m), URLs: wanted})
		}
	}
	return out
}

// othersSwitch says whether every other group of the cluster is suspended, with the same
// scheme, as it has to be before PD stops: it would not find PD any more.
func othersSwitch(g *v1alpha1.PDGroup, s observation.Snapshot) verdict.Verdict {
	for _, other := range s.Groups {
		if other.GroupKind() == v1alpha1.KindPDGroup || other.GetDeletionTimestamp() != nil {
			continue
		}
		if !other.GetComponentSpec().Suspended || v1alpha1.SpecScheme(other) != v1alpha1.SpecScheme(g) {
			edit := origin.OfGroup(other)
			return verdict.Refusef("%s %s has to be suspended, and its spec.tls to be changed as that of PD is: %s", other.GroupKind(), other.GetName(), edit.Edit())
		}
	}
	return verdict.Allow()
}

// MaySwitch says whether PD's members may stop to start with the other scheme.
func MaySwitch(g *v1alpha1.PDGroup, s observation.Snapshot) verdict.Verdict {
	if !IsSwitching(g) || g.Status.PeersHaveBothSchemes {
		return verdict.Allow()
	}
	if others := othersSwitch(g, s); !others.IsAllowed() {
		return others
	}
	if known := MayTrustAnswer(g, s); !known.IsAllowed() {
		return verdict.Refusef("PD must have the %s URLs of its members before it stops: %s", v1alpha1.SpecScheme(g), known.Reason())
	}
	return verdict.Refusef("setting the %s URLs of its members in PD", v1alpha1.SpecScheme(g))
}

// MayStart allows members to start with the scheme of the spec, or to stay stopped on
// their way to it.
func MayStart(g *v1alpha1.PDGroup, s observation.Snapshot) verdict.Verdict {
	if Scheme(g, s) == v1alpha1.SpecScheme(g) || g.DeletionTimestamp != nil {
		return verdict.Allow()
	}
	edit := origin.OfGroup(g)
	tls, stop := edit.SharedField("tls"), edit.SharedField("suspended")
	was := "added"
	if v1alpha1.SpecScheme(g) == v1alpha1.SchemeHTTP {
		was = "removed"
	}
	switch {
	case !g.Spec.Suspended:
		return verdict.Refusef("spec.tls: it was %s, and PD's pods were not stopped for it: set %s to true until no pod of the cluster runs", was, stop)
	case haveStopped(g, s):
		return verdict.Refusef("spec.tls: it was %s after PD had stopped, and its members reach each other by %s only: undo that in %s and set %s to false; when PD is Ready, change both at once",
			was, v1alpha1.PDScheme(g), tls, stop)
	}
	return verdict.Allow()
}
