package localcluster

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// DirEnv names the environment variable that moves the state directory.
const DirEnv = "TIDB_GROUPS_LOCAL"

// defaultDir holds the state when neither an option nor the environment says otherwise.
const defaultDir = "/var/lib/tidb-groups-local"

// Fixed addresses. The control plane listens on the bridge's own address and
// nowhere else: it is not reachable from outside, and does not get into the way
// of whatever else uses these ports on the machine. Pods get their addresses
// from 10.244.1.0 on, so that the two never meet.
const (
	podRange     = "10.244.0.0/16"
	podFirst     = "10.244.1.1"
	gateway      = "10.244.0.1"
	nodeBase     = "10.244.0.11"
	serviceRange = "10.96.0.0/16"
	serviceAPI   = "10.96.0.1"
	serviceDNS   = "10.96.0.10"
	apiPort      = 6443
	etcdPort     = 2379
	etcdPeerPort = 2380
	etcdInfoPort = 2381
	region       = "local"
)

// Options configure a cluster. The zero value is the usual one.
type Options struct {
	// Dir is the state directory. Default: $TIDB_GROUPS_LOCAL, else
	// /var/lib/tidb-groups-local. Only one cluster runs on a machine at a time.
	Dir string
	// Out receives one line per step. Default: nothing is printed.
	Out io.Writer
}

// Node is one of the cluster's nodes.
type Node struct {
	// Name, also the value of kubernetes.io/hostname.
	Name string
	// Zone is the value of topology.kubernetes.io/zone.
	Zone string
	// Address is the node's InternalIP.
	Address string
}

func listNodes() []Node {
	address := netip.MustParseAddr(nodeBase)
	var all []Node
	for i, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		all = append(all, Node{Name: fmt.Sprintf("node-%d", i+1), Zone: zone, Address: address.String()})
		address = address.Next()
	}
	return all
}

func (o Options) complete() (Options, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Dir == "" {
		o.Dir = os.Getenv(DirEnv)
	}
	if o.Dir == "" {
		o.Dir = defaultDir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Options{}, fmt.Errorf("resolve state directory: %w", err)
	}
	// Every socket below it must fit into the 107 bytes of a socket address,
	// and the directory is a field in the environment mark.
	if len(dir) > 60 {
		return Options{}, fmt.Errorf("state directory %s is %d bytes long; at most 60 leave room for the sockets below it", dir, len(dir))
	}
	if strings.ContainsAny(dir, "|\n\" \t\\") {
		return Options{}, fmt.Errorf("state directory %q has a character that is not allowed in it", dir)
	}
	if dir == "/" || filepath.Dir(dir) == "/" {
		return Options{}, errors.New("state directory must be at least two levels below /")
	}
	o.Dir = dir
	return o, nil
}
