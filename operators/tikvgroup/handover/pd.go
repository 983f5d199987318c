package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

const (
	// scheduler is PD's one scheduler that keeps leaders away from stores.
	scheduler = "evict-leader-scheduler"
	// maxAnswer bounds what is read of an answer, in bytes. A store takes about 1 kB.
	maxAnswer = 16 << 20
	// maxQuote bounds what is told of an answer that refuses.
	maxQuote = 200
	// perCall bounds one call.
	perCall = 3 * time.Second
)

// pdServer is a PD, by its HTTP API.
type pdServer struct {
	url    string
	client *http.Client
}

// newPD returns a PD by its base URL.
func newPD(url string) pdServer {
	transport := httpclient.Transport(httpclient.ClusterDomain(httpclient.ResolvConf))
	transport.DisableKeepAlives = true // the next call may go to another member
	client := httpclient.New(transport)
	client.Timeout = perCall
	return pdServer{url: strings.TrimSuffix(url, "/"), client: client}
}

// store is a store as PD lists it.
type store struct {
	ID      uint64
	Address string
	State   string
	TiFlash bool
	Leaders int
	Regions int
}

// refusal is an answer of PD other than 200.
type refusal struct {
	status int
	body   string
}

func (r *refusal) Error() string { return fmt.Sprintf("PD answers %d: %s", r.status, r.body) }

// stores lists all stores that are no tombstones.
func (p pdServer) stores(ctx context.Context) ([]store, error) {
	var answer struct {
		Stores []struct {
			Store struct {
				ID        uint64 `json:"id"`
				Address   string `json:"address"`
				StateName string `json:"state_name"`
				Labels    []struct {
					Key   string `json:"key"`
					Value string `json:"value"`
				} `json:"labels"`
			} `json:"store"`
			Status struct {
				Leaders int `json:"leader_count"`
				Regions int `json:"region_count"`
			} `json:"status"`
		} `json:"stores"`
	}
	if err := p.call(ctx, http.MethodGet, "/pd/api/v1/stores", nil, &answer); err != nil {
		return nil, fmt.Errorf("list stores: %w", err)
	}
	var out []store
	for _, s := range answer.Stores {
		one := store{ID: s.Store.ID, Address: s.Store.Address, State: s.Store.StateName, Leaders: s.Status.Leaders, Regions: s.Status.Regions}
		for _, l := range s.Store.Labels {
			one.TiFlash = one.TiFlash || strings.EqualFold(l.Key, "engine") && strings.HasPrefix(l.Value, "tiflash")
		}
		out = append(out, one)
	}
	return out, nil
}

// evicted returns the stores that PD keeps leaders away from. Without any PD has no
// such scheduler and says 404.
func (p pdServer) evicted(ctx context.Context) (map[uint64]bool, error) {
	var answer struct {
		Stores map[uint64]json.RawMessage `json:"store-id-ranges"`
	}
	if err := p.call(ctx, http.MethodGet, "/pd/api/v1/scheduler-config/"+scheduler+"/list", nil, &answer); err != nil && !isNotFound(err) {
		return nil, fmt.Errorf("list stores without leaders: %w", err)
	}
	out := map[uint64]bool{}
	for id := range answer.Stores {
		out[id] = true
	}
	return out, nil
}

// evict has PD take the leaders of a store away and keep them away.
func (p pdServer) evict(ctx context.Context, id uint64) error {
	body := map[string]any{"name": scheduler, "store_id": id}
	if err := p.call(ctx, http.MethodPost, "/pd/api/v1/schedulers", body, nil); err != nil {
		return fmt.Errorf("evict leaders of store %d: %w", id, err)
	}
	return nil
}

// readmit lets a store lead again; harmless if it may.
func (p pdServer) readmit(ctx context.Context, id uint64) error {
	err := p.call(ctx, http.MethodDelete, fmt.Sprintf("/pd/api/v1/schedulers/%s-%d", scheduler, id), nil, nil)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("let store %d lead again: %w", id, err)
	}
	return nil
}

func isNotFound(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.status == http.StatusNotFound
}

func (p pdServer) call(ctx context.Context, method, path string, body, into any) (err error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, sent)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := httpclient.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return &refusal{resp.StatusCode, strings.TrimSpace(string(answer[:min(len(answer), maxQuote)]))}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
