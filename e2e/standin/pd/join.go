package pd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// joinTimeout is how long a member waits for the answer whether it is let in.
const joinTimeout = 10 * time.Second

// prepareJoin asks a running member to be added and sets the configuration so
// that etcd starts into the existing cluster. With data of its own, a member
// only ever goes on with that.
func (c *Config) prepareJoin(ctx context.Context, tlsConfig *tls.Config, log *zap.Logger) error {
	if c.hasData() {
		// etcd reads its members from its own data.
		c.InitialClusterState = "existing"
		if c.Join != "" {
			c.InitialCluster = c.selfAsCluster()
		}
		return nil
	}
	if c.Join == "" {
		return nil
	}
	if c.Join == c.AdvertiseClientURLs {
		return errors.New("join self is forbidden")
	}
	marker := filepath.Join(c.DataDir, "join")
	if saved, err := os.ReadFile(marker); err == nil {
		// It was added before and died before it had started.
		c.InitialCluster, c.InitialClusterState = string(saved), "existing"
		return nil
	}
	// As the real one, it asks once, and ends when etcd refuses it.
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	cluster, err := c.addSelf(ctx, tlsConfig, log)
	if err != nil {
		return fmt.Errorf("join %s: %w", c.Join, err)
	}
	c.InitialCluster, c.InitialClusterState = cluster, "existing"
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.WriteFile(marker, []byte(cluster), 0o600); err != nil {
		return fmt.Errorf("remember join: %w", err)
	}
	return nil
}

func (c *Config) hasData() bool {
	_, err := os.Stat(filepath.Join(c.DataDir, "member", "wal"))
	return err == nil
}

func (c *Config) selfAsCluster() string {
	return c.Name + "=" + strings.ReplaceAll(c.AdvertisePeerURLs, ",", ","+c.Name+"=")
}

func (c *Config) addSelf(ctx context.Context, tlsConfig *tls.Config, log *zap.Logger) (string, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(c.Join, ","), DialTimeout: 3 * time.Second, TLS: tlsConfig, Logger: log,
	})
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	// Nothing is lost when the connection does not close well.
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list members: %w", err)
	}
	for _, m := range list.Members {
		if m.Name == "" {
			return "", errors.New("there is a member that has not joined successfully")
		}
		if m.Name == c.Name {
			return "", errors.New("missing data or join a duplicated pd")
		}
	}
	added, err := client.MemberAdd(ctx, strings.Split(c.AdvertisePeerURLs, ","))
	if err != nil {
		return "", fmt.Errorf("add member: %w", err)
	}
	var parts []string
	for _, m := range added.Members {
		name := m.Name
		if m.ID == added.Member.ID {
			name = c.Name
		}
		if name == "" {
			return "", errors.New("there is a member that has not joined successfully")
		}
		for _, u := range m.PeerURLs {
			parts = append(parts, name+"="+u)
		}
	}
	return strings.Join(parts, ","), nil
}
