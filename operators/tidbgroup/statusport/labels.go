package statusport

import (
	"context"
	"encoding/json"
	"fmt"
)

// PostLabels posts labels to a server's status port, as TiDB's HTTP API wants
// them since v6.3.
func PostLabels(ctx context.Context, host string, labels map[string]string) error {
	body, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return postRequest(ctx, host, "/labels", "application/json", string(body))
}
