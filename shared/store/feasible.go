package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// staying returns the stores of the members' kind that would be Up without some
// members, of whatever group, and those that count now. Members that are on their
// way out already count for neither.
func (c Component) staying(without ...*v1alpha1.Instance) (after, before []pd.Store) {
	going, gone := map[string]bool{}, map[string]bool{}
	for _, m := range c.Stores {
		if m.Store == nil {
			continue
		}
		going[m.Store.ID] = leaving(m.Instance)
		gone[m.Store.ID] = slices.ContainsFunc(without, func(i *v1alpha1.Instance) bool { return i.Name == m.Instance.Name })
	}
	for _, s := range c.Snapshot.PD.Stores {
		if isTiFlash(s) == c.HasLeaders || s.State != pd.StateUp {
			continue
		}
		if !going[s.ID] || gone[s.ID] {
			before = append(before, s)
		}
		if !going[s.ID] && !gone[s.ID] {
			after = append(after, s)
		}
	}
	return after, before
}

// leaving reports whether an Instance's member is on its way out for good.
func leaving(i *v1alpha1.Instance) bool { return i.Spec.Retire || i.DeletionTimestamp != nil }

// TooFew says why PD could not keep all replicas without some members, all of
// them together; empty if it could (KV-03). It knows what PD asks itself, that
// as many stores stay Up as there are replicas, and each placement rule.
func (c Component) TooFew(without ...*v1alpha1.Instance) string {
	if c.Silence != "" {
		return c.Silence
	}
	after, before := c.staying(without...)
	if c.HasLeaders && len(after) < c.Snapshot.PD.MaxReplicas {
		return fmt.Sprintf("%s would stay Up (%s), and PD keeps %d replicas of every region: add stores first, or lower PD's replication.max-replicas",
			count(len(after), "TiKV"), ids(after), c.Snapshot.PD.MaxReplicas)
	}
	for _, r := range c.Snapshot.PD.Rules {
		has := fitting(r, after)
		if has >= r.Count || has == fitting(r, before) {
			continue // it is fulfilled, or nothing becomes worse
		}
		return c.broken(r, has)
	}
	return ""
}

// broken says that a placement rule could not be fulfilled, and who can help.
func (c Component) broken(r pd.Rule, has int) string {
	name := r.Group + "/" + r.ID
	if table, ok := strings.CutPrefix(r.ID, "table-"); ok && r.Group == "tiflash" {
		table, _, _ = strings.Cut(table, "-")
		return fmt.Sprintf("the table with ID %s has %d TiFlash replicas and %s would stay Up: its owner must lower them first: ALTER TABLE ... SET TIFLASH REPLICA %d "+
			"(SELECT table_schema, table_name FROM information_schema.tables WHERE tidb_table_id = %s)", table, r.Count, count(has, "TiFlash"), has, table)
	}
	return fmt.Sprintf("PD's placement rule %s wants %d stores%s and %d would stay Up: add such stores first, or change the rule: pd-ctl config placement-rules show", name, r.Count, where(r), has)
}

// ZoneLost names a zone that regions would lose, though there are not more of
// them than replicas; empty if there is none.
func (c Component) ZoneLost(without []*v1alpha1.Instance) string {
	labels := c.Snapshot.PD.LocationLabels
	if len(labels) == 0 {
		return ""
	}
	after, before := c.staying(without...)
	left := zones(after, labels[0])
	for _, s := range before {
		zone := label(s, labels[0])
		if zone == "" || left[zone] > 0 || len(left) >= c.Snapshot.PD.MaxReplicas {
			continue
		}
		return fmt.Sprintf("no %s would stay Up in %s %s, and regions with %d replicas would have to do with %d: add a store there first, or name another Instance with the annotation %s",
			kind(c.HasLeaders), labels[0], zone, c.Snapshot.PD.MaxReplicas, len(left), v1alpha1.AnnotationRemoveFirst)
	}
	return ""
}

// zones counts stores by their value of a label.
func zones(stores []pd.Store, key string) map[string]int {
	out := map[string]int{}
	for _, s := range stores {
		if zone := label(s, key); zone != "" {
			out[zone]++
		}
	}
	return out
}

func count(n int, kind string) string {
	if n == 1 {
		return "1 " + kind
	}
	return fmt.Sprintf("%d %ss", n, kind)
}

func kind(leaders bool) string {
	if leaders {
		return "TiKV"
	}
	return "TiFlash"
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
