package pdclient

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

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidb-groups/tidb-groups/shared/pd"

	"github.com/pingcap/kvproto/pkg/pdpb"
	pdhttp "github.com/tikv/pd/client/http"
)

// storesAnswer is what of PD's answer to /stores is of interest. The client
// library's own type leaves out the node state, by which a store that has just
// registered is told from a dead one.
type storesAnswer struct {
	stores []storeAnswer
}

func (a *storesAnswer) total() int64 { return maxAnswer }

func (a *storesAnswer) read(r *reader) error {
	return r.object(func(key string) error {
		if key != "stores" {
			return r.skip()
		}
		return r.list(maxStores, key, func() error {
			var next storeAnswer
			if err := r.value(&next); err != nil {
				return err
			}
			a.stores = append(a.stores, next)
			return few(len(next.Store.Labels), "labels")
		})
	})
}

// membersAnswer is what of PD's answer to /members is of interest.
type membersAnswer struct {
	pdhttp.MembersInfo
}

func (a *membersAnswer) total() int64 { return maxAnswer }

func (a *membersAnswer) read(r *reader) error {
	return r.object(func(key string) error {
		switch key {
		case "header":
			return r.value(&a.Header)
		case "leader":
			return r.value(&a.Leader)
		case "members":
			return r.list(maxMembers, key, func() error {
				var next *pdpb.Member
				if err := r.value(&next); err != nil {
					return err
				}
				a.Members = append(a.Members, next)
				return few(len(next.GetClientUrls())+len(next.GetPeerUrls()), "URLs")
			})
		}
		return r.skip()
	})
}

// healthAnswer is PD's answer to /health: by member ID, whether it is healthy.
type healthAnswer struct {
	healthy map[string]bool
}

func (a *healthAnswer) total() int64 { return maxAnswer }

func (a *healthAnswer) read(r *reader) error {
	a.healthy = map[string]bool{}
	return r.list(maxMembers, "members", func() error {
		var next pdhttp.Health
		if err := r.value(&next); err != nil {
			return err
		}
		a.healthy[decimal(next.MemberID)] = next.Health
		return nil
	})
}

// storeAnswer is one store of a storesAnswer.
type storeAnswer struct {
	Store struct {
		ID            uint64              `json:"id"`
		Address       string              `json:"address"`
		StatusAddress string              `json:"status_address"`
		Version       string              `json:"version"`
		StateName     string              `json:"state_name"`
		NodeState     int                 `json:"node_state"`
		Labels        []pdhttp.StoreLabel `json:"labels"`
		LastHeartbeat int64               `json:"last_heartbeat"`
	} `json:"store"`
	Status struct {
		LastHeartbeat time.Time `json:"last_heartbeat_ts"`
		Leaders       int       `json:"leader_count"`
		Regions       int       `json:"region_count"`
		Capacity      string    `json:"capacity"`
		Available     string    `json:"available"`
	} `json:"status"`
}

// replicateAnswer is what of PD's answer to /config/replicate is of interest.
type replicateAnswer struct {
	MaxReplicas    int    `json:"max-replicas"`
	LocationLabels string `json:"location-labels"`
	IsolationLevel string `json:"isolation-level"`
	PlacementRules flag   `json:"enable-placement-rules"`
}

// evictedAnswer is what of the configuration of the scheduler that evicts
// leaders is of interest.
type evictedAnswer struct {
	Stores map[uint64]json.RawMessage `json:"store-id-ranges"`
}

// rulesAnswer is PD's answer to /config/rules.
type rulesAnswer struct {
	rules []ruleAnswer
}

func (a *rulesAnswer) total() int64 { return maxAnswer }

func (a *rulesAnswer) read(r *reader) error {
	return r.list(maxRules, "rules", func() error {
		var next ruleAnswer
		if err := r.value(&next); err != nil {
			return err
		}
		a.rules = append(a.rules, next)
		values := len(next.LocationLabels) + len(next.Constraints)
		for _, c := range next.Constraints {
			values += len(c.Values)
		}
		return few(values, "labels")
	})
}

// ruleAnswer is what of a placement rule is of interest. The client library's
// own type cannot be read without the keys.
type ruleAnswer struct {
	Group          string   `json:"group_id"`
	ID             string   `json:"id"`
	Start          string   `json:"start_key"`
	End            string   `json:"end_key"`
	Role           string   `json:"role"`
	Count          int      `json:"count"`
	LocationLabels []string `json:"location_labels"`
	IsolationLevel string   `json:"isolation_level"`
	Constraints    []struct {
		Key    string   `json:"key"`
		Op     string   `json:"op"`
		Values []string `json:"values"`
	} `json:"label_constraints"`
}

// flag is a bool that PD writes as a string.
type flag bool

// UnmarshalJSON reads true and "true".
func (f *flag) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseBool(string(bytes.Trim(data, `"`)))
	if err != nil {
		return fmt.Errorf("read %s as a boolean: %w", data, err)
	}
	*f = flag(value)
	return nil
}

var _ json.Unmarshaler = (*flag)(nil)

// addMembers puts the cluster's identity, its members and its leader into a
// view. They come from one answer, so that they belong together, and an answer
// that contradicts itself is not believed: a member that was removed and still
// runs goes on answering.
func addMembers(v *pd.View, call string, answer membersAnswer) error {
	switch {
	case answer.Header.GetClusterId() == 0:
		return &pd.Malformed{Call: call, Why: "it has no cluster ID"}
	case answer.Leader.GetMemberId() == 0:
		return &pd.Malformed{Call: call, Why: "there is no leader"}
	}
	v.ClusterID = decimal(answer.Header.GetClusterId())
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
			Name: m.GetName(), ID: decimal(m.GetMemberId()),
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

// addHealth marks the members that are healthy. Who is not listed as a member
// is passed over.
func addHealth(v *pd.View, answer healthAnswer) {
	for i := range v.Members {
		v.Members[i].Healthy = answer.healthy[v.Members[i].ID]
	}
}

// addStores puts the stores into a view.
func addStores(v *pd.View, answer storesAnswer) {
	v.Bootstrapped = true
	slices.SortFunc(answer.stores, func(a, b storeAnswer) int { return cmp.Compare(a.Store.ID, b.Store.ID) })
	for _, s := range answer.stores {
		if s.Store.StateName == pd.StateTombstone {
			continue
		}
		labels := make(map[string]string, len(s.Store.Labels))
		for _, l := range s.Store.Labels {
			labels[l.Key] = l.Value
		}
		v.Stores = append(v.Stores, pd.Store{
			ID: decimal(s.Store.ID), Address: s.Store.Address, StatusAddress: s.Store.StatusAddress,
			State: s.Store.StateName, Version: s.Store.Version, Labels: labels,
			// Node state 0 is "preparing". Once it has left it the store was
			// alive, even if PD has forgotten when it last heard of it.
			Started: s.Store.NodeState > 0 || s.Store.LastHeartbeat > 0 || s.Status.LastHeartbeat.Unix() > 0,
			Leaders: s.Status.Leaders, Regions: s.Status.Regions,
			LowSpace: lowSpace(s.Status.Capacity, s.Status.Available),
		})
	}
}

// lowSpaceRatio is how full a store's disk may be for PD to give it regions:
// schedule.low-space-ratio, by default.
const lowSpaceRatio = 0.8

// lowSpace reports whether PD takes a store's disk for full. Of a size that cannot be
// read nothing is said.
func lowSpace(capacity, available string) bool {
	whole, free := bytesOf(capacity), bytesOf(available)
	return whole > 0 && free >= 0 && free < whole*(1-lowSpaceRatio)
}

// bytesOf reads a size as PD writes it, such as 1.5GiB or 0B; negative if it is none.
func bytesOf(text string) float64 {
	size, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil || text == "" {
		return -1
	}
	return size.AsApproximateFloat64()
}

// addReplicate puts the configuration of replication into a view.
func addReplicate(v *pd.View, answer replicateAnswer) {
	v.MaxReplicas = answer.MaxReplicas
	v.PlacementRules, v.IsolationLevel = bool(answer.PlacementRules), answer.IsolationLevel
	for label := range strings.SplitSeq(answer.LocationLabels, ",") {
		if label = strings.TrimSpace(label); label != "" {
			v.LocationLabels = append(v.LocationLabels, label)
		}
	}
}

// addConfig puts the stored tables of PD's configuration into a view.
func addConfig(v *pd.View, answer map[string]json.RawMessage) {
	v.Config = map[string]string{}
	for _, section := range pd.StoredSections() {
		addValue(v.Config, section, answer[section])
	}
}

// addValue adds the values below a key; what is no table is a value itself.
func addValue(into map[string]string, key string, value json.RawMessage) {
	var table map[string]json.RawMessage
	if err := json.Unmarshal(value, &table); err != nil || table == nil {
		if len(value) > 0 {
			into[key] = string(value)
		}
		return
	}
	for name, below := range table {
		addValue(into, key+"."+name, below)
	}
}

// addEvicted puts the stores that give their leaders away into a view.
func addEvicted(v *pd.View, answer evictedAnswer) {
	for _, id := range slices.Sorted(maps.Keys(answer.Stores)) {
		v.EvictLeader = append(v.EvictLeader, decimal(id))
	}
}

// addRules puts the placement rules into a view.
func addRules(v *pd.View, answer rulesAnswer) {
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

func decimal(id uint64) string { return strconv.FormatUint(id, 10) }

// urlAt returns one of the URLs of a member; empty if it has not so many.
func urlAt(urls []string, at int) string {
	if len(urls) <= at {
		return ""
	}
	return urls[at]
}
