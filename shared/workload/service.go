package workload

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Port is a named port of a component.
type Port struct {
	// Name of the port, in container and Service.
	Name string
	// Number of the port.
	Number int32
}

// PeerService returns the headless Service that gives every pod its DNS name,
// before it is ready too, because members must find each other to become so.
func PeerService(g v1alpha1.Group, ports []Port) *corev1.Service {
	s := &corev1.Service{ObjectMeta: Meta(g, names.PeerService(g.GetName()))}
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone,
		Selector: Selector(g), PublishNotReadyAddresses: true, Ports: servicePorts(ports, nil),
	}
	if families := g.GetComponentSpec().PeerService; families != nil {
		setIPFamilies(&s.Spec, *families)
	}
	return s
}

// setIPFamilies has a Service have the families of addresses that the user wants. What he does
// not say is the API server's choice.
func setIPFamilies(s *corev1.ServiceSpec, families v1alpha1.IPFamilies) {
	if policy := families.IPFamilyPolicy; policy != "" {
		s.IPFamilyPolicy = &policy
	}
	s.IPFamilies = families.IPFamilies
}

// ClientService returns the Service that clients connect to, shaped by the
// user.
func ClientService(g v1alpha1.Group, spec *v1alpha1.ServiceSpec, ports []Port) *corev1.Service {
	if spec == nil {
		spec = &v1alpha1.ServiceSpec{}
	}
	s := &corev1.Service{ObjectMeta: Meta(g, g.GetName())}
	s.Labels = labels.Merge(spec.Labels, s.Labels)
	s.Annotations = maps.Clone(spec.Annotations)
	kind := cmp.Or(spec.Type, corev1.ServiceTypeClusterIP)
	if kind != corev1.ServiceTypeClusterIP {
		ports = publishedPorts(ports, spec.Ports)
	}
	s.Spec = corev1.ServiceSpec{
		Type: kind, Selector: Selector(g), Ports: servicePorts(ports, spec.Ports),
		LoadBalancerClass: spec.LoadBalancerClass, LoadBalancerSourceRanges: spec.LoadBalancerSourceRanges,
		ExternalTrafficPolicy: spec.ExternalTrafficPolicy,
	}
	setIPFamilies(&s.Spec, spec.IPFamilies)
	if spec.Closed {
		s.Spec.Selector = labels.Merge(s.Spec.Selector, labels.Set{v1alpha1.LabelClosed: "true"})
	}
	return s
}

// publishedPorts returns the ports of a Service that is reached from outside of Kubernetes: the
// first, at which clients log in, and those that the user names. A status port takes requests
// without a login.
func publishedPorts(ports []Port, named []v1alpha1.ServicePort) []Port {
	out := ports[:1:1]
	for _, p := range ports[1:] {
		if slices.ContainsFunc(named, func(o v1alpha1.ServicePort) bool { return o.Name == p.Name }) {
			out = append(out, p)
		}
	}
	return out
}

// ServicePortNumber returns the number that a named port has on the Service.
func ServicePortNumber(spec *v1alpha1.ServiceSpec, port Port) int32 {
	if spec != nil {
		for _, p := range spec.Ports {
			if p.Name == port.Name && p.Port != 0 {
				return p.Port
			}
		}
	}
	return port.Number
}

// Endpoint is where clients of a group connect to, host:port: the load balancer's address
// if the Service has one, else its name; empty if it is closed to them. live is nil while there
// is no Service.
func Endpoint(g v1alpha1.Group, spec *v1alpha1.ServiceSpec, port Port, live *corev1.Service) string {
	if spec != nil && spec.Closed {
		return ""
	}
	number := ServicePortNumber(spec, port)
	if live != nil && live.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range live.Status.LoadBalancer.Ingress {
			if host := cmp.Or(in.Hostname, in.IP); host != "" {
				return names.HostPort(host, number)
			}
		}
	}
	return names.HostPort(names.ServiceHost(g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain), number)
}

func servicePorts(ports []Port, overrides []v1alpha1.ServicePort) []corev1.ServicePort {
	out := make([]corev1.ServicePort, 0, len(ports))
	for _, p := range ports {
		sp := corev1.ServicePort{Name: p.Name, Port: p.Number, TargetPort: intstr.FromString(p.Name), Protocol: corev1.ProtocolTCP}
		for _, o := range overrides {
			if o.Name != p.Name {
				continue
			}
			if o.Port != 0 {
				sp.Port = o.Port
			}
			sp.NodePort = o.NodePort
		}
		out = append(out, sp)
	}
	return out
}

// ContainerPorts returns the ports as a container declares them.
func ContainerPorts(ports []Port) []corev1.ContainerPort {
	out := make([]corev1.ContainerPort, 0, len(ports))
	for _, p := range ports {
		out = append(out, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Number, Protocol: corev1.ProtocolTCP})
	}
	return out
}
