package issuance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// Observed is what there is of the certificates of a cluster.
type Observed struct {
	// Requests are the certificates that are to be there. None if a user brings all.
	Requests []certificate.Request
	// Groups of the cluster.
	Groups []v1alpha1.Group
	// Secrets by name, nil for one that does not exist. That of the CA is among them.
	Secrets map[string]*corev1.Secret
	// Certificates of cert-manager by name, nil for one that does not exist.
	Certificates map[string]*Certificate
	// Issuer that signs them.
	Issuer Issuer
	// Hindered says why no Certificate can be made; empty if any can.
	Hindered string

	// judged is what was found of the Secrets when they were read; nil until Judged.
	judged *judged
}

// Issuer is what is known of an issuer.
type Issuer struct {
	// Absent says that there is none, Ready what it says of itself; nil if it says nothing, or
	// may not be read.
	Absent bool
	Ready  *metav1.Condition
}

// Certificate is a Certificate of cert-manager, and what its status says.
type Certificate struct {
	Object *unstructured.Unstructured
	Ready  *metav1.Condition
	// Failed says why the last attempt came to nothing.
	Failed *metav1.Condition
}

// status is what is read of a status of cert-manager.
type status struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// conditionsOf reads the conditions of an object of cert-manager; none if it has others.
func conditionsOf(u *unstructured.Unstructured) []metav1.Condition {
	var s status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return nil
	}
	return s.Status.Conditions
}

// readCertificate returns a Certificate with what its status says.
func readCertificate(u *unstructured.Unstructured) *Certificate {
	all := conditionsOf(u)
	out := &Certificate{Object: u, Ready: meta.FindStatusCondition(all, conditionReady)}
	if issuing := meta.FindStatusCondition(all, conditionIssuing); issuing != nil && issuing.Status == metav1.ConditionFalse {
		out.Failed = issuing
	}
	return out
}

// Conditions of cert-manager.
const (
	conditionReady   = "Ready"
	conditionIssuing = "Issuing"
)

// issuerTimeout is for how long an issuer may take to answer before that is a matter for a user.
const issuerTimeout = time.Minute

// annotationCertificate is on a Secret that cert-manager has written.
const annotationCertificate = v1alpha1.CertManagerGroup + "/certificate-name"
