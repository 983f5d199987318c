package v1alpha1

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of a Secret with a certificate, as kubernetes.io/tls and cert-manager have them.
const (
	TLSKeyCA   = "ca.crt"
	TLSKeyCert = "tls.crt"
	TLSKeyKey  = "tls.key"
)

// TLS of the connections between the components of a cluster. They are encrypted, and
// both ends show a certificate. An empty object switches it on.
type TLS struct {
	// SecretName of the certificate that the members serve and connect with: keys
	// ca.crt, tls.crt and tls.key. A change restarts the members; changed content does
	// not. Default: <group>-cluster-secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// AllowedCommonNames are the common names of certificates that the members let
	// connect, beside that the CA of ca.crt has signed them: for a CA that signs for
	// others, too. PD demands one of its own members alone, and takes one name before
	// v8.4. The certificates of all groups of the cluster and of the operators have to
	// have one of them. A change restarts the members. Default: any.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[-._ a-zA-Z0-9]+$`
	// +listType=set
	// +optional
	AllowedCommonNames []string `json:"allowedCommonNames,omitempty"`
}

// CommonNames are the common names of certificates that the members of a group let connect;
// none for any.
func CommonNames(g Group) []string {
	if tls := g.GetTLS(); tls != nil {
		return tls.AllowedCommonNames
	}
	return nil
}

// OthersCommonNames are those of certificates by which the members of other groups, and
// operators, may connect; none for any.
func OthersCommonNames(g Group) []string {
	if info, _ := LookupComponent(g.GroupKind()); info.OwnCommonNames {
		return nil
	}
	return CommonNames(g)
}

// ClientTLS is how clients that are not members connect to a cluster.
type ClientTLS struct {
	// ClientSecretName of the certificate with which the operators connect to the
	// members of the cluster: keys ca.crt, tls.crt and tls.key. Default:
	// <cluster>-cluster-client-secret, where <cluster> is the PDGroup's name without -pd
	// at its end.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`
}

// CertificateSource says who makes the Secrets of a cluster that no secretName and no
// clientSecretName names. Without one a user does.
type CertificateSource struct {
	// Issuer of cert-manager signs the certificates of all groups of the cluster: the
	// operator of PDGroups makes a Certificate for each. Secrets that a secretName names
	// are still the user's. Default: none.
	// +optional
	Issuer *IssuerReference `json:"issuer,omitempty"`
	// SelfSigned has the cluster sign its certificates itself: the operator of PDGroups
	// makes a CA, once, and with it the certificates of all groups, and renews these. Its
	// Secret is <pdgroup>-ca-secret, and stays when the cluster is deleted. Secrets that a
	// secretName names are still the user's. Default: none.
	// +optional
	SelfSigned *SelfSigned `json:"selfSigned,omitempty"`
}

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// Name of the issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Kind of the issuer. An Issuer is of the namespace. Default: Issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// Group of the kind. Issuers of others than cert-manager have one of their own.
	// Default: cert-manager.io.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
}

// GroupOrDefault returns the group of the issuer's kind.
func (r IssuerReference) GroupOrDefault() string { return cmp.Or(r.Group, CertManagerGroup) }

// KindOrDefault returns the issuer's kind.
func (r IssuerReference) KindOrDefault() string { return cmp.Or(r.Kind, KindIssuer) }

// Names of cert-manager.
const (
	CertManagerGroup  = "cert-manager.io"
	KindIssuer        = "Issuer"
	KindClusterIssuer = "ClusterIssuer"
	KindCertificate   = "Certificate"
)

// SelfSigned is a CA of a cluster's own.
type SelfSigned struct {
	// RotatedAt has another CA take the place of the one that there is, once when it
	// changes: in three phases, each of which restarts the members as safely as any other
	// roll. Any text will do; a time is most useful. Default: in the last fifth of its life.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RotatedAt string `json:"rotatedAt,omitempty"`
}

// CARotation is how far another CA has taken the place of a cluster's own.
type CARotation struct {
	// Phase: TrustBoth, in which members come to trust the new one too; NewLeaves, in which
	// they get certificates that it has signed; TrustNew, in which they cease to trust the
	// one before.
	Phase CARotationPhase `json:"phase"`
	// Message says what the phase waits for.
	// +optional
	Message string `json:"message,omitempty"`
}

// CARotationPhase is a phase of the rotation of a CA.
type CARotationPhase string

// Phases of the rotation of a CA, in their order.
const (
	RotationTrustBoth CARotationPhase = "TrustBoth"
	RotationNewLeaves CARotationPhase = "NewLeaves"
	RotationTrustNew  CARotationPhase = "TrustNew"
)

// Keys of the Secret of a cluster's own CA: the CA that takes its place, and then the one whose
// place it took, while that is trusted still.
const (
	NextKeyCert     = "next.crt"
	NextKeyKey      = "next.key"
	PreviousKeyCert = "previous.crt"
)

// PDTLS is TLS of a PDGroup, whose cluster it is.
// +kubebuilder:validation:XValidation:rule="!(has(self.issuer) && has(self.selfSigned))",message="tls.issuer and tls.selfSigned exclude each other, for one CA signs all certificates of a cluster: remove one of them"
type PDTLS struct {
	TLS               `json:",inline"`
	ClientTLS         `json:",inline"`
	CertificateSource `json:",inline"`
}

// ClusterTLS is TLS of a TidbCluster.
// +kubebuilder:validation:XValidation:rule="!(has(self.issuer) && has(self.selfSigned))",message="tls.issuer and tls.selfSigned exclude each other, for one CA signs all certificates of a cluster: remove one of them"
type ClusterTLS struct {
	ClientTLS         `json:",inline"`
	CertificateSource `json:",inline"`
	// AllowedCommonNames of groups that have none of their own, but for TiProxy: the
	// common names of certificates that the members let connect. PD takes one name before
	// v8.4. Certificates that are made have the first one. Default: any.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[-._ a-zA-Z0-9]+$`
	// +listType=set
	// +optional
	AllowedCommonNames []string `json:"allowedCommonNames,omitempty"`
}

// MakesSecrets reports whether the operators have the Secrets of a cluster made that no field names.
func (s CertificateSource) MakesSecrets() bool { return s.Issuer != nil || s.SelfSigned != nil }

// SourceOf returns who makes the Secrets of a cluster; a user if there is no PDGroup.
func SourceOf(pd *PDGroup) CertificateSource {
	if pd == nil || pd.Spec.TLS == nil {
		return CertificateSource{}
	}
	return pd.Spec.TLS.CertificateSource
}

// CASecretName returns the Secret of a cluster's own CA.
func CASecretName(pd *PDGroup) string { return pd.Name + "-ca-secret" }

// BackendTLS is TLS from proxies towards what MySQL clients of TiDB servers connect to.
type BackendTLS struct {
	// SecretName of what the proxies connect with: ca.crt has signed what the servers show
	// to MySQL clients, tls.crt and tls.key are shown to them. Default:
	// <cluster>-tidb-client-secret, where <cluster> is the PDGroup's name without -pd at
	// its end.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// MySQLTLS is TLS towards MySQL clients. Whether they have to use it is for the database to
// say, for all groups: SET GLOBAL require_secure_transport = ON.
type MySQLTLS struct {
	// SecretName of the certificate that clients are shown: keys ca.crt, tls.crt and
	// tls.key. Default: <group>-server-secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// DNSNames by which clients connect, beside the name of the Service: the certificate has
	// to have them, or gets them if it is made. A change restarts no member. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	// +optional
	DNSNames []string `json:"dnsNames,omitempty"`
	// ClientAuth says what becomes of certificates of clients. None asks for none. Verify
	// takes those alone that ca.crt has signed, so that users can be made with REQUIRE
	// X509; while require_secure_transport is ON, every client has to show one, and Jobs
	// of spec.sql show the servers' own, which needs client auth for it. A TiProxy wants
	// one of every client that uses TLS. Default: None.
	// +kubebuilder:validation:Enum=None;Verify
	// +optional
	ClientAuth ClientAuth `json:"clientAuth,omitempty"`
}

// ClientAuth says what becomes of certificates of MySQL clients.
type ClientAuth string

// ClientAuthVerify verifies those that are shown.
const ClientAuthVerify ClientAuth = "Verify"

// VerifiesClients reports whether a group verifies the certificates of MySQL clients.
func VerifiesClients(g Group) bool {
	mysql := MySQLOf(g)
	return mysql != nil && mysql.ClientAuth == ClientAuthVerify
}

// MySQLOf returns the TLS of a group towards MySQL clients, nil for none.
func MySQLOf(g Group) *MySQLTLS {
	if of, is := g.(ClientGroup); is {
		return of.GetMySQLTLS()
	}
	return nil
}

// CertificateStatus is a certificate that a group uses.
type CertificateStatus struct {
	// SecretName of the certificate.
	SecretName string `json:"secretName"`
	// NotAfter is when it expires, or an earlier one of those that have signed it.
	NotAfter metav1.Time `json:"notAfter"`
	// NotBefore is when the same one became valid.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// Trust is a digest of the authorities in ca.crt and of the one that has signed the
	// certificate, of a Secret that is made for the group.
	// +optional
	Trust string `json:"trust,omitempty"`
}

// ClusterSecretName returns the Secret with the certificate of a group's members; empty
// without TLS.
func ClusterSecretName(g Group) string {
	tls := g.GetTLS()
	if tls == nil {
		return ""
	}
	return cmp.Or(tls.SecretName, g.GetName()+"-cluster-secret")
}

// PDScheme returns the scheme of the URLs that PD's members listen at. It is not that of the
// spec while spec.tls was added or removed and pods still run.
func PDScheme(pd *PDGroup) string {
	return cmp.Or(pd.Status.Scheme, SpecScheme(pd))
}

// SpecScheme returns the scheme of the URLs that the members of a group are to listen at.
func SpecScheme(g Group) string {
	if g.GetTLS() != nil {
		return SchemeHTTPS
	}
	return SchemeHTTP
}

// ClientSecretName returns the Secret with the certificate that the operators connect
// with to the members of a cluster; empty without TLS.
func ClientSecretName(pd *PDGroup) string {
	if pd.Spec.TLS == nil {
		return pd.Status.ClientSecretName
	}
	return cmp.Or(pd.Spec.TLS.ClientSecretName, clusterName(pd)+"-cluster-client-secret")
}

// inheritTLS is the TLS of a group of a TidbCluster: its own, or that which the cluster hands to
// groups without.
func inheritTLS[T any](c *TidbClusterSpec, own *T) *T {
	if own == nil && c.TLS != nil {
		return new(T)
	}
	return own
}

// clusterName is what Secrets of the cluster of a group are named after.
func clusterName(g Group) string { return strings.TrimSuffix(g.PDGroupName(), "-pd") }

// MySQLSecretName returns the Secret with the certificate that MySQL clients of a group
// are shown; empty if none are.
func MySQLSecretName(g Group) string {
	mysql := MySQLOf(g)
	if mysql == nil {
		return ""
	}
	return cmp.Or(mysql.SecretName, g.GetName()+"-server-secret")
}

// BackendSecretName returns the Secret with the certificate that the proxies of a group
// connect with to TiDB servers, as MySQL clients; empty if they use none.
func BackendSecretName(g Group) string {
	backend := BackendOf(g)
	if backend == nil {
		return ""
	}
	return cmp.Or(backend.SecretName, clusterName(g)+"-tidb-client-secret")
}

// BackendOf returns the TLS of a group towards TiDB servers, nil for none.
func BackendOf(g Group) *BackendTLS {
	if of, is := g.(BackendGroup); is {
		return of.GetBackendTLS()
	}
	return nil
}
