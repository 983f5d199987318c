package statusport

import (
	"context"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// port is where TiDB answers about itself.
const port = settings.Port(v1alpha1.PortTiDBStatus)

// postRequest posts to a server, and makes an error of any answer but 200.
func postRequest(ctx context.Context, host, path, contentType, body string) error {
	refusal, err := port.Post(ctx, host, path, contentType, body)
	if err == nil && refusal != "" {
		return fmt.Errorf("post to %s: %s", port.URL(ctx, host, path), refusal)
	}
	return err
}
