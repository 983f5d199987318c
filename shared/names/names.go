package names

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Group returns the name of the group object that a TidbCluster makes for a
// component; name is empty for the main group of the component.
func Group(cluster, component, name string) string {
	if name == "" {
		return cluster + "-" + component
	}
	return cluster + "-" + component + "-" + name
}

// Instance returns the name of the Instance, and of the pod, in a slot.
func Instance(group string, slot int32) string {
	return group + "-" + strconv.Itoa(int(slot))
}

// Slot returns the slot of a group's Instance by its name, and whether it is
// one of that group.
func Slot(group, instance string) (int32, bool) {
	number, ok := strings.CutPrefix(instance, group+"-")
	if !ok {
		return 0, false
	}
	slot, err := strconv.ParseInt(number, 10, 32)
	if err != nil || slot < 0 || strconv.FormatInt(slot, 10) != number {
		return 0, false
	}
	return int32(slot), true
}

// Claim returns the name of the claim of a volume of an Instance.
func Claim(volume, instance string) string { return volume + "-" + instance }

// IsCopiedClaim reports whether a claim has another name than its labels, the volume and the
// Instance, give it: a user has copied a claim with its labels, to keep the data perhaps.
func IsCopiedClaim(name, volume, instance string) bool {
	return volume != "" && name != Claim(volume, instance)
}

// PeerService returns the name of a group's headless Service.
func PeerService(group string) string { return group + "-peer" }

// Revision returns the name of a group's ControllerRevision and of its
// ConfigMap.
func Revision(group, hash string) string { return group + "-" + hash }

// ServiceHost returns the DNS name of a Service. Without the cluster's domain it
// resolves under any, by the pods' search list.
func ServiceHost(service, namespace, clusterDomain string) string {
	host := service + "." + namespace + ".svc"
	if clusterDomain != "" {
		host += "." + clusterDomain
	}
	return host
}

// PodHost returns the DNS name of a group's pod.
func PodHost(pod, group, namespace, clusterDomain string) string {
	return pod + "." + ServiceHost(PeerService(group), namespace, clusterDomain)
}

// PDURL returns where the members of a PDGroup are reached by clients.
func PDURL(scheme, pdGroup, namespace, clusterDomain string, port int32) string {
	return fmt.Sprintf("%s://%s:%d", scheme, ServiceHost(pdGroup, namespace, clusterDomain), port)
}

// PodOfHost returns the pod that an address made by PodHost belongs to, with or
// without scheme and port, if it is one of the given group and namespace.
func PodOfHost(address, group, namespace string) (string, bool) {
	host := address
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	host, _, _ = strings.Cut(host, ":")
	pod, rest, ok := strings.Cut(host, ".")
	if !ok || pod == "" {
		return "", false
	}
	want := ServiceHost(PeerService(group), namespace, "") // whatever the domain
	if rest != want && !strings.HasPrefix(rest, want+".") {
		return "", false
	}
	return pod, true
}

// HostPort returns host:port, with the brackets that an IPv6 address needs.
func HostPort(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
