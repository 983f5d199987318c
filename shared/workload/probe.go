package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ReadinessProbe is a readiness probe that asks every second, and believes a refusal after three.
func ReadinessProbe(handler corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 2, FailureThreshold: 3, SuccessThreshold: 1}
}

// StatusPort asks a path of the status port of a group's members. With TLS the port wants a
// certificate, which the kubelet has not: that it listens has to do.
func StatusPort(g v1alpha1.Group, path, port string) corev1.ProbeHandler {
	if g.GetTLS() != nil {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(port)}}
	}
	return HTTPGet(path, port)
}

// HTTPGet asks a path of a named port.
func HTTPGet(path, port string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: corev1.URISchemeHTTP}}
}
