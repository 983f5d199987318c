// Package pdetcd connects stand-ins to the etcd behind PD's client ports.
package pdetcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Timeout bounds one call, and the time until a connection is there.
const Timeout = 3 * time.Second

// Connect connects to PD's members, over TLS if there is a configuration. The connection outlives ctx until it is closed, so that
// keys can be taken back.
func Connect(ctx context.Context, endpoints []string, over *tls.Config) (*clientv3.Client, error) {
	etcd, err := clientv3.New(clientv3.Config{
		Context: context.WithoutCancel(ctx), Endpoints: endpoints, TLS: over, DialTimeout: Timeout, DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second, AutoSyncInterval: 30 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to PD's etcd: %w", err)
	}
	return etcd, nil
}
