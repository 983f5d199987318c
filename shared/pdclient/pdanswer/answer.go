package pdanswer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	pdhttp "github.com/tikv/pd/client/http"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Stores is what of PD's answer to /stores is of interest. The client
// library's own type leaves out the node state, by which a store that has just
// registered is distinguished from a dead one.
type Stores struct {
	stores []store
}

func (a *Stores) total() int64 { return maxAnswer }

func (a *Stores) read(r *reader) error {
	return r.object(func(key string) error {
		if key != "stores" {
			return r.skip()
		}
		return r.list(maxStores, key, func() error {
			var next store
			if err := r.value(&next); err != nil {
				return err
			}
			a.stores = append(a.stores, next)
			return checkCount(len(next.Store.Labels), "labels")
		})
	})
}

// Members is what of PD's answer to /members is of interest.
type Members struct {
	pdhttp.MembersInfo
}

func (a *Members) total() int64 { return maxAnswer }

func (a *Members) read(r *reader) error {
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
				return checkCount(len(next.GetClientUrls())+len(next.GetPeerUrls()), "URLs")
			})
		}
		return r.skip()
	})
}

// Health is PD's answer to /health: by member ID, whether it is healthy.
type Health struct {
	healthy map[string]bool
}

func (a *Health) total() int64 { return maxAnswer }

func (a *Health) read(r *reader) error {
	a.healthy = map[string]bool{}
	return r.list(maxMembers, "members", func() error {
		var next pdhttp.Health
		if err := r.value(&next); err != nil {
			return err
		}
		a.healthy[formatID(next.MemberID)] = next.Health
		return nil
	})
}

// store is one store of a storesAnswer.
type store struct {
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

// Replicate is what of PD's answer to /config/replicate is of interest.
type Replicate struct {
	MaxReplicas    int    `json:"max-replicas"`
	LocationLabels string `json:"location-labels"`
	IsolationLevel string `json:"isolation-level"`
	PlacementRules flag   `json:"enable-placement-rules"`
}

// Evicted is what of the configuration of the scheduler that evicts
// leaders is of interest.
type Evicted struct {
	Stores map[uint64]json.RawMessage `json:"store-id-ranges"`
}

// Schedule is what of PD's answer to /config/schedule is of interest.
type Schedule struct {
	Schedulers []struct {
		Type     string `json:"type"`
		Disabled bool   `json:"disable"`
	} `json:"schedulers-v2"`
}

// EvictsLeaders reports whether PD is to run the scheduler that evicts leaders.
func (a Schedule) EvictsLeaders() bool {
	for _, s := range a.Schedulers {
		if s.Type == "evict-leader" && !s.Disabled {
			return true
		}
	}
	return false
}

// Rules is PD's answer to /config/rules. Of the rules that TiDB makes for tables with replicas
// that are learners only the first is kept of those that ask for the same: there is one for each
// partition.
type Rules struct {
	rules []rule
}

func (a *Rules) total() int64 { return maxRulesAnswer }

func (a *Rules) read(r *reader) error {
	known, kept := map[string]bool{}, int64(0)
	return r.list(math.MaxInt, "rules", func() error {
		var next rule
		begin := r.InputOffset()
		if err := r.value(&next); err != nil {
			return err
		}
		if asks := next.learnersKey(); asks == "" || !known[asks] {
			known[asks], a.rules = true, append(a.rules, next)
			kept += r.InputOffset() - begin
		}
		switch {
		case len(a.rules) > maxRules:
			return errRules
		case kept > maxAnswer:
			return errTooLong
		}
		values := len(next.LocationLabels) + len(next.Constraints)
		for _, c := range next.Constraints {
			values += len(c.Values)
		}
		return checkCount(values, "labels")
	})
}

// rule is what of a placement rule is of interest. The client library's
// own type cannot be read without the keys.
type rule struct {
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

// learnersKey writes down what the rule of a table with replicas that are learners asks for; empty for
// any other rule. The group of these is called as the engine of their stores.
func (r rule) learnersKey() string {
	if r.Role != "learner" || !v1alpha1.HasLearnersOnly(r.Group) {
		return ""
	}
	return fmt.Sprintf("%q %d %q %q %q", r.Group, r.Count, r.Constraints, r.LocationLabels, r.IsolationLevel)
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
