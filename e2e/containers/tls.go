package containers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// secret returns the data of a Secret.
func (w *World) secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	if err := w.session.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, &secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// over is how this machine connects to the members of a group, as the operators do, and they
// are known by a name; nil without TLS.
func (w *World) over(ctx context.Context, g v1alpha1.Group, name string) (*tls.Config, error) {
	if g.GetTLS() == nil {
		return nil, nil
	}
	var pd v1alpha1.PDGroup
	if err := w.session.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: g.PDGroupName()}, &pd); err != nil {
		return nil, fmt.Errorf("get PDGroup %s: %w", g.PDGroupName(), err)
	}
	data, err := w.secret(ctx, v1alpha1.ClientSecretName(&pd))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(data[v1alpha1.TLSKeyCert], data[v1alpha1.TLSKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the operators: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: buildCertPool(data), Certificates: []tls.Certificate{pair}, ServerName: name}, nil
}

// buildCertPool holds the CA of a Secret.
func buildCertPool(data map[string][]byte) *x509.CertPool {
	out := x509.NewCertPool()
	out.AppendCertsFromPEM(data[v1alpha1.TLSKeyCA])
	return out
}

// mysql is how MySQL clients know the servers of a group; nil if they offer no TLS.
func (w *World) mysql(ctx context.Context, group string) (*tls.Config, error) {
	for _, c := range v1alpha1.ComponentTable() {
		g, serves := c.New().(v1alpha1.ClientGroup)
		if !serves {
			continue
		}
		if err := w.session.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: group}, g); err != nil {
			continue // it is one of the other kind, or the Service is not found either
		}
		name := v1alpha1.MySQLSecretName(g)
		if name == "" {
			return nil, nil
		}
		data, err := w.secret(ctx, name)
		if err != nil {
			return nil, err
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: buildCertPool(data), ServerName: names.ServiceHost(group, w.namespace, g.GetComponentSpec().ClusterDomain)}, nil
	}
	return nil, nil
}

// memberOf returns the pod of a member, and how it is connected to over TLS.
func (w *World) memberOf(ctx context.Context, name string) (*corev1.Pod, *tls.Config, error) {
	pod, err := w.pod(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range v1alpha1.ComponentTable() {
		if c.Component != pod.Labels[v1alpha1.LabelComponent] {
			continue
		}
		g := c.New()
		if err := w.session.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: pod.Labels[v1alpha1.LabelGroup]}, g); err != nil {
			return nil, nil, fmt.Errorf("get the group of pod %s: %w", name, err)
		}
		config, err := w.over(ctx, g, names.PodHost(pod.Name, g.GetName(), w.namespace, g.GetComponentSpec().ClusterDomain))
		return pod, config, err
	}
	return pod, nil, nil
}

var errNoTLS = errors.New("it does not speak TLS")

// Serial implements scenario.World. A certificate that is no good is shown, too.
func (w *World) Serial(ctx context.Context, name string) (string, error) {
	pod, config, err := w.memberOf(ctx, name)
	if err != nil {
		return "", err
	}
	if config == nil {
		return "", fmt.Errorf("pod %s: %w", name, errNoTLS)
	}
	port := int32(0)
	for _, c := range v1alpha1.ComponentTable() {
		if c.Component == pod.Labels[v1alpha1.LabelComponent] {
			port = c.StatusPort
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		return bad.UnverifiedCertificates[0].SerialNumber.String(), nil
	}
	if err != nil {
		return "", fmt.Errorf("connect to pod %s: %w", name, err)
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	secured, _ := conn.(*tls.Conn)
	return secured.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}
