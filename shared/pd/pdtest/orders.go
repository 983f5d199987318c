package pdtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// execute carries an order out, unless the test has it refused.
func (p *PD) execute(call string, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	if err := do(); err != nil {
		return err
	}
	p.calls = append(p.calls, call)
	return nil
}

func newRefusedError(call string, status int, format string, args ...any) error {
	return &pd.Refused{Call: call, Status: status, Body: fmt.Sprintf(format, args...)}
}

// store returns a store to change. PD's answer to an unknown one differs from
// call to call in its status only.
func (p *PD) store(call, id string, unknown int) (*pd.Store, error) {
	if slices.Contains(p.gone, id) {
		return nil, newRefusedError(call, http.StatusGone, "[PD:core:ErrStoreRemoved]store %s has been removed", id)
	}
	at := slices.IndexFunc(p.view.Stores, func(s pd.Store) bool { return s.ID == id })
	if at < 0 {
		return nil, newRefusedError(call, unknown, "[PD:core:ErrStoreNotFound]store %s not found", id)
	}
	return &p.view.Stores[at], nil
}

// SetStoreLabels implements pd.Client.
func (p *PD) SetStoreLabels(_ context.Context, id string, labels map[string]string) error {
	return p.execute("labels "+id, func() error {
		s, err := p.store("set-store-labels", id, http.StatusNotFound)
		if err != nil {
			return err
		}
		merged := map[string]string{}
		maps.Copy(merged, s.Labels)
		maps.Copy(merged, labels)
		maps.DeleteFunc(merged, func(_, value string) bool { return value == "" })
		s.Labels = merged
		return nil
	})
}

// EnablePlacementRules implements pd.Client.
func (p *PD) EnablePlacementRules(context.Context) error {
	return p.execute("placement-rules", func() error {
		p.view.PlacementRules = true
		return nil
	})
}

// SetConfig implements pd.Client. If the View has a Config, it shows it from then on.
func (p *PD) SetConfig(_ context.Context, items map[string]any) error {
	return p.execute("config", func() error {
		maps.Copy(p.config, items)
		if p.view.Config == nil {
			return nil
		}
		shown := maps.Clone(p.view.Config)
		for key, value := range items {
			text, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("write %s: %w", key, err)
			}
			shown[key] = string(text)
		}
		p.view.Config = shown
		return nil
	})
}

// TransferLeader implements pd.Client. The member leads at once.
func (p *PD) TransferLeader(_ context.Context, member string) error {
	return p.execute("transfer "+member, func() error {
		if _, ok := p.view.Member(member); !ok {
			return newRefusedError("transfer-leader", http.StatusInternalServerError, "no valid pd to transfer etcd leader")
		}
		p.view.Leader = member
		return nil
	})
}

// DeleteMember implements pd.Client. If the leader goes, another member that is
// healthy leads.
func (p *PD) DeleteMember(_ context.Context, id string) error {
	return p.execute("delete-member "+id, func() error {
		at := slices.IndexFunc(p.view.Members, func(m pd.Member) bool { return m.ID == id })
		if at < 0 {
			return newRefusedError("delete-member", http.StatusInternalServerError,
				"[PD:etcd:ErrEtcdMemberRemove]etcdserver: member not found: etcdserver: member not found")
		}
		led := p.view.Members[at].Name == p.view.Leader
		p.view.Members = slices.Delete(p.view.Members, at, at+1)
		if !led {
			return nil
		}
		p.view.Leader = ""
		if next := slices.IndexFunc(p.view.Members, func(m pd.Member) bool { return m.Healthy }); next >= 0 {
			p.view.Leader = p.view.Members[next].Name
		}
		return nil
	})
}

// SetPeerURLs implements pd.Client.
func (p *PD) SetPeerURLs(_ context.Context, id string, urls []string) error {
	return p.execute("peer-urls "+id, func() error {
		at := slices.IndexFunc(p.view.Members, func(m pd.Member) bool { return m.ID == id })
		if at < 0 {
			return newRefusedError("set-peer-urls", http.StatusNotFound, "etcdserver: member not found")
		}
		p.view.Members[at].PeerURL, p.view.Members[at].OtherPeerURL = urls[0], ""
		if len(urls) > 1 {
			p.view.Members[at].OtherPeerURL = urls[1]
		}
		return nil
	})
}

// EvictLeaders implements pd.Client. The leaders go at once to the first store
// that may have them; if there is none, or the test holds them, they stay.
func (p *PD) EvictLeaders(_ context.Context, id string) error {
	return p.execute("evict "+id, func() error {
		s, err := p.store("evict-leaders", id, http.StatusInternalServerError)
		if err != nil {
			return err
		}
		if !p.view.EvictsLeaders(id) {
			p.view.EvictLeader = append(p.view.EvictLeader, id)
			slices.SortFunc(p.view.EvictLeader, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		}
		to := slices.IndexFunc(p.view.Stores, func(o pd.Store) bool { return o.State == pd.StateUp && !p.view.EvictsLeaders(o.ID) })
		if to >= 0 && !p.held {
			p.view.Stores[to].Leaders += s.Leaders
			s.Leaders = 0
		}
		return nil
	})
}

// StopEvictingLeaders implements pd.Client. No leader comes back by itself.
func (p *PD) StopEvictingLeaders(_ context.Context, id string) error {
	return p.execute("stop-evicting "+id, func() error {
		p.view.EvictLeader = slices.DeleteFunc(p.view.EvictLeader, func(e string) bool { return e == id })
		return nil
	})
}

// DeleteStore implements pd.Client. The store goes at once, unless PD is Slow;
// its regions and leaders are simply gone.
func (p *PD) DeleteStore(_ context.Context, id string) error {
	return p.execute("delete-store "+id, func() error {
		s, err := p.store("delete-store", id, http.StatusNotFound)
		switch {
		case err != nil:
			return err
		case s.State == pd.StateOffline:
			return nil
		}
		stay := -1
		for _, o := range p.view.Stores {
			if o.State != pd.StateOffline {
				stay++
			}
		}
		if stay < p.view.MaxReplicas {
			return newRefusedError("delete-store", http.StatusBadRequest,
				"[PD:core:ErrStoresNotEnough]can not remove store %s since the number of up stores would be %d while need %d", id, stay, p.view.MaxReplicas)
		}
		s.State = pd.StateOffline
		if p.slow == 0 {
			p.makeTombstone(id)
			return nil
		}
		p.leaving[id] = p.slow
		return nil
	})
}

// RestoreStore implements pd.Client.
func (p *PD) RestoreStore(_ context.Context, id string) error {
	return p.execute("restore "+id, func() error {
		s, err := p.store("restore-store", id, http.StatusNotFound)
		if err != nil {
			return err
		}
		if s.State == pd.StateOffline {
			s.State = pd.StateUp
		}
		delete(p.leaving, id)
		return nil
	})
}

// makeTombstone makes a store a tombstone, which no View lists.
func (p *PD) makeTombstone(id string) {
	delete(p.leaving, id)
	p.gone = append(p.gone, id)
	p.view.Stores = slices.DeleteFunc(p.view.Stores, func(s pd.Store) bool { return s.ID == id })
}

// RegisterServers has PD list TiDB servers, and no others.
func (p *PD) RegisterServers(servers ...pd.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = servers
}

// Servers implements pd.Client.
func (p *PD) Servers(context.Context) ([]pd.Server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.servers), p.refuse
}

// ForgetServer implements pd.Client.
func (p *PD) ForgetServer(_ context.Context, server pd.Server) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.servers, func(s pd.Server) bool {
		return s.Address == server.Address && s.Revision == server.Revision && !s.Alive
	})
	if p.refuse != nil || at < 0 {
		return false, p.refuse
	}
	p.servers = slices.Delete(slices.Clone(p.servers), at, at+1)
	p.calls = append(p.calls, "forget "+server.Address)
	return true, nil
}
