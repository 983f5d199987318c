package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// room is which stores of the members' kind, of whatever group, PD may place
// peers on, without some members and with them. Stores that are leaving already
// are in neither. A Disconnected store takes no peers, but still counts as lost if it is
// one of the members: a short break must not make an infeasible removal look feasible.
type room struct {
	after, before []pd.Store
	// kept is how many stores of any kind PD would not have been ordered to remove,
	// and deletes whether it will be ordered to remove one.
	kept    int
	deletes bool
	// suspended names a suspended group whose stores are not counted for it.
	suspended string
}

// roomWithout returns the room that is left without some members.
func roomWithout(c storestate.State, members []*v1alpha1.Instance) room {
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
			out.deletes = true
		case !going[s.ID]:
			out.kept++
		}
		if s.State != pd.StateUp && s.HasLearnersOnly() != c.HasLeaders {
			out.suspended = cmp.Or(out.suspended, storestate.DescribeSuspension(c, s))
		}
		stays := s.State == pd.StateUp && !gone[s.ID] && !going[s.ID]
		if s.HasLearnersOnly() == c.HasLeaders || !stays && (!gone[s.ID] || s.State == pd.StateDown) {
			continue
		}
		out.before = append(out.before, s)
		if stays {
			out.after = append(out.after, s)
		}
	}
	return out
}

// CanDoWithout says whether the cluster can do without some members, all of them
// together (KV-03, FL-05): every region must find as many stores
// that are Up as PD is configured to keep replicas, in as many zones as before or as
// there are replicas, and so must every placement rule. Stores of an exclusive group
// count for the rules that name them, and for nothing else (KV-26). What is not as
// it should be anyway, and does not become worse, needs no member.
func CanDoWithout(c storestate.State, members ...*v1alpha1.Instance) verdict.Verdict {
	left := roomWithout(c, members)
	may := verdict.RequireAll(enoughStores(c, left), zonesKept(c, left), rulesKept(c, left))
	if !may.IsAllowed() && left.suspended != "" {
		return verdict.Refuse(may.Reason() + "; " + left.suspended)
	}
	return may
}

// MayRemove says whether a member may leave now.
func MayRemove(c storestate.State, i *v1alpha1.Instance) verdict.Verdict {
	return verdict.RequireAll(storestate.PDKnown(c), storestate.StoreOf(c, i).Own, CanDoWithout(c, i))
}

// enoughStores compares the stores with the number of replicas.
func enoughStores(c storestate.State, left room) verdict.Verdict {
	replicas := c.Snapshot.PD.MaxReplicas
	after, before := ordinaryStores(c, left.after), ordinaryStores(c, left.before)
	switch {
	case c.HasLeaders && len(after) < replicas && len(after) < len(before):
		beside := ""
		if n := len(left.after) - len(after); n > 0 {
			beside = fmt.Sprintf(" beside %d exclusive", n)
		}
		return verdict.Refusef("%s%s would stay Up (%s), and PD keeps %d replicas of every region: add stores first, or lower PD's replication.max-replicas",
			storestate.FormatCount(len(after), "TiKV store"), beside, storestate.ListIDs(after), replicas)
	case left.deletes && left.kept < replicas:
		// PD itself asks no more than this (ErrStoresNotEnough), of all stores
		// together.
		return verdict.Refusef("%s would stay, and PD removes none while there are not more than its %d replicas of every region: add stores first, or lower PD's replication.max-replicas",
			storestate.FormatCount(left.kept, "store"), replicas)
	}
	return verdict.Allow()
}

// zonesKept refuses for a place by PD's location-labels that regions would lose although
// there are not more such places than replicas. It matters to majorities, and so
// to TiKV only.
func zonesKept(c storestate.State, left room) verdict.Verdict {
	labels := c.Snapshot.PD.LocationLabels
	if !c.HasLeaders {
		return verdict.Allow()
	}
	for level, key := range labels {
		stay := map[string]bool{}
		for _, s := range ordinaryStores(c, left.after) {
			if LabelOf(s, key) != "" {
				stay[LabelPlaces(&s, labels)[level]] = true
			}
		}
		for _, s := range ordinaryStores(c, left.before) {
			if LabelOf(s, key) == "" || stay[LabelPlaces(&s, labels)[level]] || len(stay) >= c.Snapshot.PD.MaxReplicas {
				continue
			}
			return verdict.Refusef("no TiKV would stay Up in %s %s, and the %d replicas of a region would share %d: add a store there first%s",
				key, LabelOf(s, key), c.Snapshot.PD.MaxReplicas, len(stay), suggestAnother(c, left, level))
		}
	}
	return verdict.Allow()
}

// suggestAnother tells to have another Instance of the group removed, which is not the last
// of its place; empty if each is.
func suggestAnother(c storestate.State, left room, level int) string {
	count, labels := map[string]int{}, c.Snapshot.PD.LocationLabels
	for _, s := range ordinaryStores(c, left.after) {
		count[LabelPlaces(&s, labels)[level]]++
	}
	for _, s := range ordinaryStores(c, left.after) {
		i := c.Snapshot.Instance(s.PodName())
		if i != nil && count[LabelPlaces(&s, labels)[level]] > 1 {
			return fmt.Sprintf(", or have another Instance removed: kubectl -n %s annotate instance %s %s=true", i.Namespace, i.Name, v1alpha1.AnnotationRemoveFirst)
		}
	}
	return ""
}

// rulesKept refuses for placement rules that would find too few stores for a region:
// one by itself, or several that want the same stores.
func rulesKept(c storestate.State, left room) verdict.Verdict {
	known := map[string]bool{}
	for _, rules := range Claims(c.Snapshot.PD.Rules) {
		asks := rules.requirementKey()
		if known[asks] {
			continue
		}
		known[asks] = true
		after, short, among := rules.place(left.after)
		if len(short) == 0 {
			continue
		}
		if before, _, _ := rules.place(left.before); after < before {
			return verdict.Refuse(describeRules(c, short, among))
		}
	}
	return verdict.Allow()
}

// describeRules says what placement rules want that would find a number of stores together,
// and who can help.
func describeRules(c storestate.State, rules []pd.Rule, has int) string {
	kind, first := "TiKV", rules[0]
	if !c.HasLeaders {
		kind = "TiFlash"
	}
	if table, ok := strings.CutPrefix(first.ID, "table-"); ok && first.Group == tiflashRules {
		table, _, _ = strings.Cut(table, "-")
		// A table with partitions has a rule for each, with the ID of the partition.
		return fmt.Sprintf("the table with ID %s has %s and %s would stay Up: its owner must lower that first: ALTER TABLE ... SET TIFLASH REPLICA %d "+
			"(its name, or of the table of that partition: SELECT table_schema, table_name FROM information_schema.tables WHERE tidb_table_id = %s, or the same of information_schema.partitions WHERE tidb_partition_id = %s)",
			table, storestate.FormatCount(first.Count, "TiFlash replica"), storestate.FormatCount(has, kind+" store"), has, table, table)
	}
	var asked []string
	for _, r := range rules {
		asked = append(asked, storestate.FormatCount(r.Count, "store")+describeConstraints(r))
	}
	together := ""
	if len(rules) > 1 {
		together = " for all of them"
	}
	return fmt.Sprintf("%s wants %s and %d would stay Up%s: add such a store first, or %s",
		describeOwner(rules), strings.Join(asked, ", "), has, together, remedyForRules(c, rules))
}

// tiflashRules is the rule group in which TiDB keeps a rule for each table with
// TiFlash replicas, or each of its partitions; the rule is named table-<ID>-r.
const tiflashRules = "tiflash"

// DescribeStuck says why the regions of a store that is Offline find no place; empty if
// they do.
func DescribeStuck(c storestate.State, s pd.Store) string {
	left := roomWithout(c, nil)
	if takers := ordinaryStores(c, left.after); c.HasLeaders && !IsKeptEmpty(c, s) && len(takers) < c.Snapshot.PD.MaxReplicas {
		return fmt.Sprintf("only %s can take them (%s)", storestate.FormatCount(len(takers), "TiKV store"), storestate.ListIDs(takers))
	} else if full := lowOnSpace(takers); c.HasLeaders && !IsKeptEmpty(c, s) && len(takers)-len(full) < c.Snapshot.PD.MaxReplicas {
		return fmt.Sprintf("PD moves none to a store whose disk is less than 20%% free (%s): let their volumes grow, or add stores", storestate.ListIDs(full))
	}
	for _, r := range c.Snapshot.PD.Rules {
		if has := countFitting(r, left.after); has < r.Count && (r.Group == tiflashRules) == !c.HasLeaders {
			return describeRules(c, []pd.Rule{r}, has)
		}
	}
	return ""
}

// lowOnSpace returns the stores that PD gives no regions for want of space.
func lowOnSpace(stores []pd.Store) []pd.Store {
	return slices.DeleteFunc(slices.Clone(stores), func(s pd.Store) bool { return !s.LowSpace })
}
