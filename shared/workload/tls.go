package workload

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

const tlsVolume = "tidb-groups-tls"

// Files are where the files of a certificate lie in a pod.
type Files struct{ Dir, CA, Cert, Key string }

// MountSecret mounts the Secret of a certificate. The kubelet renews its files when the
// Secret changes; no pod is restarted for it.
func MountSecret(m *Main, volume, secret, dir string) Files {
	m.Volumes = append(m.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	m.Mounts = append(m.Mounts, corev1.VolumeMount{Name: volume, MountPath: dir, ReadOnly: true})
	return FilesIn(dir)
}

// FilesIn returns where the files of a certificate lie in a folder.
func FilesIn(dir string) Files {
	return Files{Dir: dir, CA: path.Join(dir, v1alpha1.TLSKeyCA), Cert: path.Join(dir, v1alpha1.TLSKeyCert), Key: path.Join(dir, v1alpha1.TLSKeyKey)}
}

// MountTLS mounts the certificate of a group's members, if it has TLS.
func MountTLS(g v1alpha1.Group, m *Main) {
	if g.GetTLS() != nil {
		MountSecret(m, tlsVolume, v1alpha1.ClusterSecretName(g), TLSDir(g))
	}
}

// TLSDir is where the certificate of a group's members is mounted.
func TLSDir(g v1alpha1.Group) string { return TLSDirOf(g.Component()) }

// TLSDirOf is where the certificate of a component's members is mounted.
func TLSDirOf(component string) string { return "/var/lib/" + component + "-tls" }

// HookFlags are the flags by which a program in a pod shows the certificate of the group's
// members to PD, none without TLS.
func HookFlags(g v1alpha1.Group) []string {
	if g.GetTLS() == nil {
		return nil
	}
	return []string{"--tls=" + TLSDir(g)}
}

// LocalFlags are the flags by which a program in a pod asks the member of this pod over TLS,
// at localhost, which the certificate need not know; none without TLS.
func LocalFlags(g v1alpha1.Group) []string {
	if g.GetTLS() == nil {
		return nil
	}
	return append(HookFlags(g), "--server-name="+names.PodHost("$(POD_NAME)", g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain))
}

// TLSInputs are what a member's pod is rendered from of TLS, none without.
func TLSInputs(g v1alpha1.Group) map[string]any {
	if g.GetTLS() == nil {
		return nil
	}
	out := map[string]any{"tlsSecret": v1alpha1.ClusterSecretName(g)}
	if allowed := v1alpha1.CommonNames(g); len(allowed) > 0 {
		out["allowedCommonNames"] = allowed
	}
	return out
}

// MySQLInputs are what a member's pod is rendered from of TLS with MySQL clients, none
// without.
func MySQLInputs(g v1alpha1.Group) map[string]any {
	secret := v1alpha1.MySQLSecretName(g)
	if secret == "" {
		return nil
	}
	return map[string]any{"mysqlSecret": secret, "mysqlVerify": v1alpha1.VerifiesClients(g)}
}
