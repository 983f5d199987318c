package pdclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient/pdanswer"
)

// Where TiDB servers register in PD's etcd, and where that key's prefix ends.
const (
	registered    = "/topology/tidb/"
	registeredEnd = "/topology/tidb0"
	infoKey       = "/info"
	ttlKey        = "/ttl"
)

// The requests and answers of etcd's gateway, which PD serves at its client port
// unless enable-grpc-gateway is false: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway
type (
	rangeRequest struct {
		Key      []byte `json:"key"`
		RangeEnd []byte `json:"range_end,omitempty"`
		KeysOnly bool   `json:"keys_only,omitempty"`
	}
	compare struct {
		Key            []byte `json:"key"`
		Target         string `json:"target"`
		Result         string `json:"result"`
		CreateRevision *int64 `json:"create_revision,omitempty,string"`
		ModRevision    *int64 `json:"mod_revision,omitempty,string"`
	}
	operation struct {
		Delete rangeRequest `json:"request_delete_range"`
	}
	txnRequest struct {
		Compare []compare   `json:"compare"`
		Success []operation `json:"success"`
	}
	txnAnswer struct {
		Succeeded bool `json:"succeeded"`
	}
	memberRequest struct {
		ID       uint64   `json:"ID,string"`
		PeerURLs []string `json:"peerURLs"`
	}
)

// Servers implements Client.
func (c *httpClient) Servers(ctx context.Context) ([]pd.Server, error) {
	var answer pdanswer.Keys
	if err := c.callEtcd(ctx, callServers, "kv/range", rangeRequest{Key: []byte(registered), RangeEnd: []byte(registeredEnd), KeysOnly: true}, &answer); err != nil {
		return nil, fmt.Errorf("list TiDB servers: %w", err)
	}
	found := map[string]pd.Server{}
	alive := map[string]bool{}
	for _, k := range answer.Keys {
		rest := strings.TrimPrefix(string(k.Key), registered)
		if address, ok := strings.CutSuffix(rest, infoKey); ok {
			found[address] = pd.Server{Address: address, Revision: k.ModRevision}
		} else if address, ok := strings.CutSuffix(rest, ttlKey); ok {
			alive[address] = true
		}
	}
	out := make([]pd.Server, 0, len(found))
	for _, s := range found {
		s.Alive = alive[s.Address]
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b pd.Server) int { return cmp.Compare(a.Address, b.Address) })
	return out, nil
}

// ForgetServer implements Client. etcd compares and deletes in one step, so that a
// server which comes back in this moment keeps its registration.
func (c *httpClient) ForgetServer(ctx context.Context, s pd.Server) (bool, error) {
	info, ttl := []byte(registered+s.Address+infoKey), []byte(registered+s.Address+ttlKey)
	var never int64
	var answer txnAnswer
	err := c.callEtcd(ctx, callForgetServer, "kv/txn", txnRequest{
		Compare: []compare{
			{Key: ttl, Target: "CREATE", Result: "EQUAL", CreateRevision: &never},
			{Key: info, Target: "MOD", Result: "EQUAL", ModRevision: &s.Revision},
		},
		Success: []operation{{Delete: rangeRequest{Key: info}}},
	}, &answer)
	if err != nil {
		return false, fmt.Errorf("forget TiDB server %s: %w", s.Address, err)
	}
	return answer.Succeeded, nil
}

// callEtcd makes one request of PD's etcd.
func (c *httpClient) callEtcd(ctx context.Context, name, verb string, request, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request %s: %w", verb, err)
	}
	return c.send(ctx, name, message{http.MethodPost, "/v3/" + verb, bytes.NewReader(body)}, into)
}
