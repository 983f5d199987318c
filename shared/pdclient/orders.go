package pdclient

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	pdhttp "github.com/tikv/pd/client/http"
)

// evictLeader is the one scheduler that evicts leaders. PD removes a store from
// it under the name of the scheduler and the store's ID.
const evictLeader = "evict-leader-scheduler"

// SetStoreLabels implements Client.
func (c *httpClient) SetStoreLabels(ctx context.Context, storeID string, labels map[string]string) error {
	id, err := strconv.ParseInt(storeID, 10, 64)
	if err != nil {
		return fmt.Errorf("set labels of store %q: %w", storeID, err)
	}
	err = c.call(ctx, callStoreLabels, nil, func(pd pdhttp.Client) error {
		return pd.SetStoreLabels(ctx, id, labels)
	})
	if err != nil {
		return fmt.Errorf("set labels of store %s: %w", storeID, err)
	}
	return nil
}

// EnablePlacementRules implements Client.
func (c *httpClient) EnablePlacementRules(ctx context.Context) error {
	err := c.call(ctx, callPlacementRules, nil, func(pd pdhttp.Client) error {
		// PD writes and reads this boolean as a string.
		return pd.SetConfig(ctx, map[string]any{"replication.enable-placement-rules": "true"})
	})
	if err != nil {
		return fmt.Errorf("enable placement rules: %w", err)
	}
	return nil
}

// SetConfig implements Client.
func (c *httpClient) SetConfig(ctx context.Context, items map[string]any) error {
	err := c.call(ctx, callSetConfig, nil, func(pd pdhttp.Client) error { return pd.SetConfig(ctx, items) })
	if err != nil {
		return fmt.Errorf("set configuration of PD: %w", err)
	}
	return nil
}

// TransferLeader implements Client.
func (c *httpClient) TransferLeader(ctx context.Context, member string) error {
	err := c.call(ctx, callTransfer, nil, func(pd pdhttp.Client) error { return pd.TransferLeader(ctx, member) })
	if err != nil {
		return fmt.Errorf("transfer PD's leader to %s: %w", member, err)
	}
	return nil
}

// DeleteMember implements Client.
func (c *httpClient) DeleteMember(ctx context.Context, id string) error {
	number, err := strconv.ParseUint(id, 10, 64)
	if err == nil {
		err = c.request(ctx, callDeleteMember, http.MethodDelete, fmt.Sprintf("/pd/api/v1/members/id/%d", number), nil)
	}
	if err != nil {
		return fmt.Errorf("delete member %s: %w", id, err)
	}
	return nil
}

// SetPeerURLs implements Client. PD has no call of its own for it: its etcd has.
func (c *httpClient) SetPeerURLs(ctx context.Context, id string, urls []string) error {
	number, err := strconv.ParseUint(id, 10, 64)
	if err == nil {
		err = c.callEtcd(ctx, callPeerURLs, "cluster/member/update", memberRequest{ID: number, PeerURLs: urls}, nil)
	}
	if err != nil {
		return fmt.Errorf("set peer URLs of member %s: %w", id, err)
	}
	return nil
}

// EvictLeaders implements Client.
func (c *httpClient) EvictLeaders(ctx context.Context, storeID string) error {
	err := c.callStore(ctx, callEvict, storeID, func(pd pdhttp.Client, id uint64) error {
		return pd.CreateScheduler(ctx, evictLeader, id)
	})
	if err != nil {
		return fmt.Errorf("evict leaders of store %s: %w", storeID, err)
	}
	return nil
}

// StopEvictingLeaders implements Client. PD says 404 for a store that it does
// not evict.
func (c *httpClient) StopEvictingLeaders(ctx context.Context, storeID string) error {
	err := c.callStore(ctx, callStopEvicting, storeID, func(pd pdhttp.Client, id uint64) error {
		return pd.DeleteScheduler(ctx, fmt.Sprintf("%s-%d", evictLeader, id))
	})
	if err != nil && ignoreStatus(err, http.StatusNotFound) != nil {
		return fmt.Errorf("stop evicting leaders of store %s: %w", storeID, err)
	}
	return nil
}

// DeleteStore implements Client.
func (c *httpClient) DeleteStore(ctx context.Context, storeID string) error {
	err := c.callStore(ctx, callDeleteStore, storeID, func(pd pdhttp.Client, id uint64) error {
		return pd.DeleteStore(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("delete store %s: %w", storeID, err)
	}
	return nil
}

// RestoreStore implements Client.
func (c *httpClient) RestoreStore(ctx context.Context, storeID string) error {
	id, err := strconv.ParseUint(storeID, 10, 64)
	if err == nil {
		err = c.request(ctx, callRestoreStore, http.MethodPost, fmt.Sprintf("/pd/api/v1/store/%d/state?state=Up", id), nil)
	}
	if err != nil {
		return fmt.Errorf("restore store %s: %w", storeID, err)
	}
	return nil
}

// callStore makes a call about one store.
func (c *httpClient) callStore(ctx context.Context, name, storeID string, do func(pdhttp.Client, uint64) error) error {
	id, err := strconv.ParseUint(storeID, 10, 64)
	if err != nil {
		return fmt.Errorf("read ID of store: %w", err)
	}
	return c.call(ctx, name, nil, func(pd pdhttp.Client) error { return do(pd, id) })
}
