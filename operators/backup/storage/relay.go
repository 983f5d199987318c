package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// relayTimeout bounds one answer of a relay.
const relayTimeout = 30 * time.Second

// hasAgent reports whether the pod gets its role from an agent of its node. A token comes first.
func hasAgent() bool { return os.Getenv(roleToken) == "" && os.Getenv(roleAgent) != "" }

// relayRole serves the keys of the pod's role on this machine until the context ends, and returns where.
// The tools of v7.1 and v7.5 ask no other address, such as the agent's, and newer ones do as well.
func relayRole(ctx context.Context, role aws.CredentialsProvider) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve the role to the tool: %w", err)
	}
	server := &http.Server{ReadTimeout: relayTimeout, WriteTimeout: relayTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys, err := role.Retrieve(r.Context())
		if err != nil {
			http.Error(w, "the agent gives no keys", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone
			"AccessKeyId": keys.AccessKeyID, "SecretAccessKey": keys.SecretAccessKey, "Token": keys.SessionToken, "Expiration": keys.Expires.UTC(),
		})
	})}
	go func() { _ = server.Serve(l) }()                   // until it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() }) // what is being answered does not matter any more
	return "http://" + l.Addr().String() + "/", nil
}
