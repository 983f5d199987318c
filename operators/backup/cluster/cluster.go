package cluster

import (
	"path/filepath"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Cluster is what BR connects to.
type Cluster struct {
	// PD is its URL; empty if the run is a logical one.
	PD string
	// TLS is the folder with the certificate to show: ca.crt, tls.crt and tls.key.
	TLS string
	// Concurrency, RateLimit in MiB/s of each store and Checksum of BR; empty for its own.
	Concurrency, RateLimit, Checksum string
}

// Args are the arguments by which BR reaches the cluster.
func (c Cluster) Args() []string {
	_, address, _ := strings.Cut(c.PD, "://")
	out := []string{"--pd", address}
	if dir := c.TLS; dir != "" {
		out = append(out, "--ca", filepath.Join(dir, v1alpha1.TLSKeyCA), "--cert", filepath.Join(dir, v1alpha1.TLSKeyCert), "--key", filepath.Join(dir, v1alpha1.TLSKeyKey))
	}
	return out
}
