package workload

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// ListenHost returns the host that stands for every address of a pod.
func ListenHost(g v1alpha1.Group) string {
	if g.GetComponentSpec().PreferIPv6 {
		return "::"
	}
	return "0.0.0.0"
}

// ListenAddress returns host:port to listen at every address of a pod, with the brackets
// that IPv6 needs.
func ListenAddress(g v1alpha1.Group, port int32) string {
	return names.HostPort(ListenHost(g), port)
}
