package statusport

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// port is where TiKV answers about itself.
const port = settings.Port(v1alpha1.PortTiKVStatus)

// HTTP is TiKV's status port.
type HTTP struct{}

var _ settings.API = HTTP{}

// Show implements settings.API: GET /config. Items that TiKV does not document are
// only in the full document.
func (HTTP) Show(ctx context.Context, host string) (map[string]any, error) {
	return port.Get(ctx, host, "/config?full=true")
}

// Take implements settings.API: POST /config, all items or none. TiKV would write
// them into its file as well, which is read-only in a pod: versions that know
// persist=false leave it, others answer 500 "config changed, but failed to persist
// change", and have taken them all the same.
func (HTTP) Take(ctx context.Context, host string, items map[string]string) (string, error) {
	body, err := json.Marshal(items)
	if err != nil {
		return "", fmt.Errorf("encode items: %w", err)
	}
	return port.Post(ctx, host, "/config?persist=false", "application/json", string(body))
}
