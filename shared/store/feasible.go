package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// room is which stores of the members' kind, of whatever group, PD may place
// peers on, without some members and with them. Whoever is on the way out already
// is in neither. Nobody counts on a store that is Disconnected, and as one of the
// members it is missed all the same: a blink must not make a removal look feasible
// that is not.
type room struct {
	after, before []pd.Store
	// kept is how many stores of any kind PD would not have been told to remove,
	// and told whether it is to be told to remove one.
	kept int
	told bool
	// asleep names a suspended group whose stores are not counted for it.
	asleep string
}

// without returns the room that is left without some members.
func (c Component) without(members []*v1alpha1.Instance) room {
	out, going, gone := room{}, map[string]bool{}, map[string]bool{}
	for _, m := range c.Stores {
		if m.Store == nil {
			continue
		}
		gone[m.Store.ID] = slices.ContainsFunc(members, func(i *v1alpha1.Instance) bool { return i.Name == m.Instance.Name })
		going[m.Store.ID] = m.Instance.Spec.Retire || m.Instance.DeletionTimestamp != nil
	}
	for _, s := range c.Snapshot.PD.Stores {
		switch {
		case s.State == pd.StateOffline:
			continue
		case gone[s.ID]:
			out.told = true
		case !going[s.ID]:
			out.kept++
		}
		if s.State != pd.StateUp && isTiFlash(s) != c.HasLeaders {
			out.asleep = cmp.Or(out.asleep, c.asleep(s))
		}
		stays := s.State == pd.StateUp && !gone[s.ID] && !going[s.ID]
		if isTiFlash(s) == c.HasLeaders || !stays && (!gone[s.ID] || s.State == pd.StateDown) {
			continue
		}
		out.before = append(out.before, s)
		if stays {
			out.after = append(out.after, s)
		}
	}
	return out
}

// Needed says why the cluster cannot do without some members, all of them
// together; empty if it can (KV-03, FL-05): every region must find as many stores
// that are Up as PD is told to keep replicas, in as many zones as before or as
// there are replicas, and so must every placement rule. Stores of an exclusive group
// count for the rules that name them, and for nothing else (KV-26). What is not as
// it should be anyway, and does not become worse, needs nobody.
func (c Component) Needed(members ...*v1alpha1.Instance) string {
	left := c.without(members)
	needed := cmp.Or(c.tooFew(left), c.zoneLost(left), c.ruleBroken(left))
	if needed != "" && left.asleep != "" {
		return needed + "; " + left.asleep
	}
	return needed
}

// Removable says why a member must not leave now; empty if it may.
func (c Component) Removable(i *v1alpha1.Instance) string {
	return cmp.Or(c.silent(), c.of(i).Problem, c.Needed(i))
}

// tooFew compares the stores with the number of replicas.
func (c Component) tooFew(left room) string {
	replicas := c.Snapshot.PD.MaxReplicas
	after, before := c.ordinary(left.after), c.ordinary(left.before)
	switch {
	case c.HasLeaders && len(after) < replicas && len(after) < len(before):
		beside := ""
		if n := len(left.after) - len(after); n > 0 {
			beside = fmt.Sprintf(" beside %d exclusive", n)
		}
		return fmt.Sprintf("%s%s would stay Up (%s), and PD keeps %d replicas of every region: add stores first, or lower PD's replication.max-replicas",
			count(len(after), "TiKV store"), beside, ids(after), replicas)
	case left.told && left.kept < replicas:
		// PD itself asks no more than this (ErrStoresNotEnough), of all stores
		// together.
		return fmt.Sprintf("%s would stay, and PD removes none while there are not more than its %d replicas of every region: add stores first, or lower PD's replication.max-replicas",
			count(left.kept, "store"), replicas)
	}
	return ""
}

// zoneLost names a place by PD's location-labels that regions would lose although
// there are not more such places than replicas. It matters to majorities, and so
// to TiKV only.
func (c Component) zoneLost(left room) string {
	labels := c.Snapshot.PD.LocationLabels
	if !c.HasLeaders {
		return ""
	}
	for level, key := range labels {
		stay := map[string]bool{}
		for _, s := range c.ordinary(left.after) {
			if label(s, key) != "" {
				stay[places(&s, labels)[level]] = true
			}
		}
		for _, s := range c.ordinary(left.before) {
			if label(s, key) == "" || stay[places(&s, labels)[level]] || len(stay) >= c.Snapshot.PD.MaxReplicas {
				continue
			}
			return fmt.Sprintf("no TiKV would stay Up in %s %s, and the %d replicas of a region would share %d: add a store there first%s",
				key, label(s, key), c.Snapshot.PD.MaxReplicas, len(stay), c.instead(left, level))
		}
	}
	return ""
}

// instead tells to have another Instance of the group removed, which is not the last
// of its place; empty if each is.
func (c Component) instead(left room, level int) string {
	count, labels := map[string]int{}, c.Snapshot.PD.LocationLabels
	for _, s := range c.ordinary(left.after) {
		count[places(&s, labels)[level]]++
	}
	for _, s := range c.ordinary(left.after) {
		i := c.Snapshot.Instance(podName(s))
		if i != nil && count[places(&s, labels)[level]] > 1 {
			return fmt.Sprintf(", or have another Instance removed: kubectl -n %s annotate instance %s %s=true", i.Namespace, i.Name, v1alpha1.AnnotationRemoveFirst)
		}
	}
	return ""
}

// ruleBroken names placement rules that would find too few stores for a region:
// one by itself, or several that want the same stores.
func (c Component) ruleBroken(left room) string {
	known := map[string]bool{}
	for _, rules := range claims(c.Snapshot.PD.Rules) {
		asks := rules.asks()
		if known[asks] {
			continue
		}
		known[asks] = true
		after, short, among := rules.place(left.after)
		if len(short) == 0 {
			continue
		}
		if before, _, _ := rules.place(left.before); after < before {
			return c.wants(short, among)
		}
	}
	return ""
}

// wants says what placement rules want that would find a number of stores together,
// and who can help.
func (c Component) wants(rules []pd.Rule, has int) string {
	kind, first := "TiKV", rules[0]
	if !c.HasLeaders {
		kind = "TiFlash"
	}
	if table, ok := strings.CutPrefix(first.ID, "table-"); ok && first.Group == tiflashRules {
		table, _, _ = strings.Cut(table, "-")
		return fmt.Sprintf("the table with ID %s has %s and %s would stay Up: whoever owns it must lower that first: ALTER TABLE ... SET TIFLASH REPLICA %d "+
			"(its name: SELECT table_schema, table_name FROM information_schema.tables WHERE tidb_table_id = %s)", table, count(first.Count, "TiFlash replica"), count(has, kind+" store"), has, table)
	}
	var asked []string
	for _, r := range rules {
		asked = append(asked, count(r.Count, "store")+where(r))
	}
	together := ""
	if len(rules) > 1 {
		together = " for all of them"
	}
	return fmt.Sprintf("%s wants %s and %d would stay Up%s: add such a store first, or %s",
		subject(rules), strings.Join(asked, ", "), has, together, c.remedy(rules))
}

// tiflashRules is the rule group in which TiDB keeps a rule for each table with
// TiFlash replicas; the rule is named table-<ID>-r.
const tiflashRules = "tiflash"

// stuck says why the regions of a store that is Offline find no place; empty if
// they do.
func (c Component) stuck(s pd.Store) string {
	left := c.without(nil)
	if takers := c.ordinary(left.after); c.HasLeaders && !c.secluded(s) && len(takers) < c.Snapshot.PD.MaxReplicas {
		return fmt.Sprintf("only %s can take them (%s)", count(len(takers), "TiKV store"), ids(takers))
	} else if full := lowOnSpace(takers); c.HasLeaders && !c.secluded(s) && len(takers)-len(full) < c.Snapshot.PD.MaxReplicas {
		return fmt.Sprintf("PD gives none to a store of which less than a fifth of the disk is free (%s): let their volumes grow, or add stores", ids(full))
	}
	for _, r := range c.Snapshot.PD.Rules {
		if has := fitting(r, left.after); has < r.Count && (r.Group == tiflashRules) == !c.HasLeaders {
			return c.wants([]pd.Rule{r}, has)
		}
	}
	return ""
}

// lowOnSpace returns the stores that PD gives no regions for want of space.
func lowOnSpace(stores []pd.Store) []pd.Store {
	return slices.DeleteFunc(slices.Clone(stores), func(s pd.Store) bool { return !s.LowSpace })
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func ids(stores []pd.Store) string {
	if len(stores) == 0 {
		return "none"
	}
	out := make([]string, len(stores))
	for n, s := range stores {
		out[n] = "store " + s.ID
	}
	return strings.Join(out, ", ")
}
