package pdanswer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// AddMembers puts the cluster's identity, its members and its leader into a
// view. They come from one answer, so that they belong together, and an answer
// that contradicts itself is not believed: a member that was removed and still
// runs goes on answering.
func AddMembers(v *pd.View, call string, answer Members) error {
	switch {
	case answer.Header.GetClusterId() == 0:
		return &pd.Malformed{Call: call, Why: "it has no cluster ID"}
	case answer.Leader.GetMemberId() == 0:
		return &pd.Malformed{Call: call, Why: "there is no leader"}
	}
	v.ClusterID = formatID(answer.Header.GetClusterId())
	v.Leader = answer.Leader.GetName()
	listed := false
	for i, m := range answer.Members {
		listed = listed || m.GetMemberId() == answer.Leader.GetMemberId()
		// One that was added and has not started yet has no name.
		if same := slices.IndexFunc(answer.Members[:i], func(o *pdpb.Member) bool {
			return o.GetMemberId() == m.GetMemberId() || o.GetName() == m.GetName() && m.GetName() != ""
		}); same >= 0 {
			return &pd.Malformed{Call: call, Why: fmt.Sprintf("two members are called %q or have its ID", m.GetName())}
		}
		v.Members = append(v.Members, pd.Member{
			Name: m.GetName(), ID: formatID(m.GetMemberId()),
			ClientURL: urlAt(m.GetClientUrls(), 0), PeerURL: urlAt(m.GetPeerUrls(), 0), OtherPeerURL: urlAt(m.GetPeerUrls(), 1),
		})
	}
	if !listed {
		return &pd.Malformed{Call: call, Why: fmt.Sprintf("the leader %s is not among the members", v.Leader)}
	}
	slices.SortFunc(v.Members, func(a, b pd.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

// AddHealth marks the members that are healthy. One not listed as a member
// is passed over.
func AddHealth(v *pd.View, answer Health) {
	for i := range v.Members {
		v.Members[i].Healthy = answer.healthy[v.Members[i].ID]
	}
}

// AddStores puts the stores into a view.
func AddStores(v *pd.View, answer Stores) {
	v.Bootstrapped = true
	slices.SortFunc(answer.stores, func(a, b store) int { return cmp.Compare(a.Store.ID, b.Store.ID) })
	newest := time.Time{}
	for _, s := range answer.stores {
		if s.Status.LastHeartbeat.After(newest) {
			newest = s.Status.LastHeartbeat
		}
	}
	for _, s := range answer.stores {
		if s.Store.StateName == pd.StateTombstone {
			continue
		}
		labels := make(map[string]string, len(s.Store.Labels))
		for _, l := range s.Store.Labels {
			labels[l.Key] = l.Value
		}
		age := newest.Sub(s.Status.LastHeartbeat)
		v.Stores = append(v.Stores, pd.Store{
			ID: formatID(s.Store.ID), Address: s.Store.Address, StatusAddress: s.Store.StatusAddress,
			State: s.Store.StateName, Version: s.Store.Version, Labels: labels,
			// Node state 0 is "preparing". Once it has left it the store was
			// alive, even if PD has forgotten when it last heard of it.
			Started:      s.Store.NodeState > 0 || s.Store.LastHeartbeat > 0 || s.Status.LastHeartbeat.Unix() > 0,
			Missed:       s.Store.StateName == pd.StateOffline && age >= disconnectedAfter,
			HeartbeatAge: certainAge(s.Status.LastHeartbeat, age),
			Leaders:      s.Status.Leaders, Regions: s.Status.Regions,
			LowSpace: hasLowSpace(s.Status.Capacity, s.Status.Available, s.Status.Regions),
		})
	}
}

// RemovedStores returns the tombstones, by ID, that regions have peers on.
func RemovedStores(answer Stores) []string {
	var out []string
	for _, s := range answer.stores {
		if s.Store.StateName == pd.StateTombstone && s.Status.Regions > 0 {
			out = append(out, formatID(s.Store.ID))
		}
	}
	slices.Sort(out)
	return out
}

// disconnectedAfter is for how long PD has not heard of a store that it calls Disconnected (in PD's
// sources pkg/core.StoreInfo.IsDisconnected). When it last heard of the others tells its time.
const disconnectedAfter = 20 * time.Second

// unstored is how long a store may have sent heartbeats after the last one that a new leader of PD
// finds stored, and some seconds more (in PD's sources pkg/core.storePersistInterval).
const unstored = 5*time.Minute + 30*time.Second

// certainAge returns for how long a store has sent no heartbeat, whichever leader of PD heard it last.
// Of one that was never heard nothing is said.
func certainAge(heard time.Time, age time.Duration) time.Duration {
	if heard.Unix() <= 0 {
		return 0
	}
	return max(age-unstored, 0)
}

const (
	// lowSpaceRatio is how full a store's disk may be for PD to give it regions:
	// schedule.low-space-ratio, by default.
	lowSpaceRatio = 0.8
	// With fewer regions than fewRegions a store with more than enoughSpace is never full (in
	// PD's sources pkg/core.StoreInfo.IsLowSpace).
	fewRegions  = 100
	enoughSpace = 8 << 30
)

// hasLowSpace reports whether PD takes a store's disk for full. Of a size that cannot be
// read nothing is said.
func hasLowSpace(capacity, available string, regions int) bool {
	whole, free := bytesOf(capacity), bytesOf(available)
	isSpared := regions < fewRegions && free > enoughSpace
	return whole > 0 && free >= 0 && free < whole*(1-lowSpaceRatio) && !isSpared
}

// bytesOf reads a size as PD writes it, such as 1.5GiB or 0B; negative if it is none.
func bytesOf(text string) float64 {
	size, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil || text == "" {
		return -1
	}
	return size.AsApproximateFloat64()
}

// AddReplicate puts the configuration of replication into a view.
func AddReplicate(v *pd.View, answer Replicate) {
	v.MaxReplicas = answer.MaxReplicas
	v.PlacementRules, v.IsolationLevel = bool(answer.PlacementRules), answer.IsolationLevel
	for label := range strings.SplitSeq(answer.LocationLabels, ",") {
		if label = strings.TrimSpace(label); label != "" {
			v.LocationLabels = append(v.LocationLabels, label)
		}
	}
}

// AddConfig puts the stored tables of PD's configuration into a view.
func AddConfig(v *pd.View, answer map[string]json.RawMessage) {
	v.Config = map[string]string{}
	for _, section := range pd.StoredSections() {
		addValue(v.Config, section, answer[section])
	}
}

// addValue adds the values below a key; what is no table is a value itself.
func addValue(into map[string]string, key string, value json.RawMessage) {
	var table map[string]json.RawMessage
	if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &table) != nil {
		if len(value) > 0 {
			into[key] = string(value)
		}
		return
	}
	for name, below := range table {
		addValue(into, key+"."+name, below)
	}
}

// AddEvicted puts the stores that give their leaders away into a view.
func AddEvicted(v *pd.View, answer Evicted) {
	for _, id := range slices.Sorted(maps.Keys(answer.Stores)) {
		v.EvictLeader = append(v.EvictLeader, formatID(id))
	}
}

// AddRules puts the placement rules into a view.
func AddRules(v *pd.View, answer Rules) {
	for _, r := range answer.rules {
		rule := pd.Rule{Group: r.Group, ID: r.ID, Start: r.Start, End: r.End, Role: r.Role, Count: r.Count,
			LocationLabels: r.LocationLabels, IsolationLevel: r.IsolationLevel}
		for _, c := range r.Constraints {
			rule.Constraints = append(rule.Constraints, pd.Constraint(c))
		}
		v.Rules = append(v.Rules, rule)
	}
	slices.SortFunc(v.Rules, func(a, b pd.Rule) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.ID, b.ID))
	})
}

func formatID(id uint64) string { return strconv.FormatUint(id, 10) }

// urlAt returns one of the URLs of a member; empty if it has not so many.
func urlAt(urls []string, at int) string {
	if len(urls) <= at {
		return ""
	}
	return urls[at]
}
