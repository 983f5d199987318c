package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// secretTimeout bounds the reading of a Secret for one connection.
const secretTimeout = 5 * time.Second

// mountedSecret returns the Secret with the certificate of a pod's members, empty if it has none.
func mountedSecret(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		for _, m := range pod.Spec.Containers[i].VolumeMounts {
			if m.MountPath != "/var/lib/"+pod.Labels[v1alpha1.LabelComponent]+"-tls" {
				continue
			}
			for _, v := range pod.Spec.Volumes {
				if v.Name == m.Name && v.Secret != nil {
					return v.Secret.SecretName
				}
			}
		}
	}
	return ""
}

// identity is how the process of a pod serves over TLS: with what is in its Secret at each
// connection, as the real ones do, and only to who shows a certificate of its CA. Nil
// without TLS.
func (a *actor) identity(pod *corev1.Pod) *tls.Config {
	secret := mountedSecret(pod)
	if secret == "" {
		return nil
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: secret}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		data, err := a.secret(hello.Context(), key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(data[v1alpha1.TLSKeyCert], data[v1alpha1.TLSKeyKey])
		if err != nil {
			return nil, fmt.Errorf("read the certificate of Secret %s: %w", secret, err)
		}
		ca := x509.NewCertPool()
		ca.AppendCertsFromPEM(data[v1alpha1.TLSKeyCA])
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
}

func (a *actor) secret(ctx context.Context, key types.NamespacedName) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	var s corev1.Secret
	if err := a.live.Get(ctx, key, &s); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key.Name, err)
	}
	return s.Data, nil
}

// files are the files of a pod's certificate for a hook, which asks for them at a path of
// the pod.
func (a *actor) files(ctx context.Context, pod *corev1.Pod, asked hook.TLS, name string) (hook.TLS, error) {
	if asked.Dir == "" {
		return asked, nil
	}
	data, err := a.secret(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: mountedSecret(pod)})
	if err != nil {
		return asked, err
	}
	dir, err := os.MkdirTemp(a.records, "tls-")
	if err != nil {
		return asked, fmt.Errorf("make a folder for certificates: %w", err)
	}
	for key, content := range data {
		if err := os.WriteFile(filepath.Join(dir, key), content, 0o600); err != nil {
			return asked, fmt.Errorf("write %s: %w", key, err)
		}
	}
	if asked.ServerName == "" { // here PD is asked at another address than the hook has
		asked.ServerName, _, _ = strings.Cut(name, ":")
	}
	return hook.TLS{Dir: dir, ServerName: asked.ServerName}, nil
}
