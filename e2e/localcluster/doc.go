// Package localcluster runs a complete Kubernetes on one Linux machine: etcd,
// the control plane, one kube-proxy, CoreDNS, and three nodes, each a real
// kubelet over a containerd of its own. It needs root, a few Debian packages,
// and nothing else: every Kubernetes binary is built from source by the test
// kit, and images come from archives.
//
// # Ownership
//
// All state is below one directory, and [Cluster.Down] finds everything else by
// marks that only this package sets, never by a common name:
//
//   - processes carry the state directory in an environment variable, which also
//     containerd's shims inherit, and a pid file with the process's start time;
//   - containers live in control groups below /tidb-groups-local;
//   - the bridge's hardware address is derived from the state directory;
//   - mounts and network namespaces lie below the state directory;
//   - kernel settings that are changed are written down first and put back.
//
// So Down works after up was killed at any point, and Up repairs what died.
//
// # Disks
//
// Every kubelet keeps its pods on a small disk of its own, which [Cluster.FillDisk]
// fills for real: the kubelet measures it, evicts, and calls the node's disk full.
// Containers and volumes are on the disk of the machine.
//
// # Network
//
// All nodes and pods are on one bridge and one address range; the nodes have
// addresses of their own on it. The host reaches pods and Services directly.
// Pods reach each other and the host, and nothing beyond it.
package localcluster
