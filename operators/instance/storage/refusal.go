package storage

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Refusal is why the API server does not let a claim be made or changed, and who
// can fix that.
type Refusal struct {
	// Reason of a condition.
	Reason string
	// Message for a user. It holds nothing that other claims of the namespace
	// change, such as how much of a quota is used.
	Message string
}

// RefusalOf reads the answer to a write of a claim, whose size is set in volumes, a field
// and the command that edits it; nil if it is not one that a user has to fix outside the
// group. The classes are those that exist, nil if that is not known.
func RefusalOf(claim *corev1.PersistentVolumeClaim, classes map[string]*storagev1.StorageClass, volumes string, err error) *Refusal {
	namespace, name := claim.Namespace, claim.Name
	if !apierrors.IsForbidden(err) {
		return nil
	}
	if q := QuotaOf(err); q != nil {
		return &Refusal{v1alpha1.ReasonQuotaExceeded, fmt.Sprintf(
			"ResourceQuota %s is too small for claim %s (it adds %s, the limit is %s): raise it: kubectl -n %s edit resourcequota %s; or set storage back in %s",
			q.Name, name, q.Adds, q.Limit, namespace, q.Name, volumes)}
	}
	if m := limitText().FindStringSubmatch(err.Error()); m != nil {
		return &Refusal{v1alpha1.ReasonLimitRangeExceeded, fmt.Sprintf(
			"a LimitRange wants claims to ask for a %s of %s, and claim %s is to ask for %s: change it: kubectl -n %s get limitrange; or set storage back in %s",
			m[1], m[2], name, m[3], namespace, volumes)}
	}
	if strings.Contains(err.Error(), expansionText) {
		return &Refusal{v1alpha1.ReasonClaimRejected, explainExpansion(claim, classes, volumes)}
	}
	return nil
}

// explainExpansion says why a claim may not grow: the API server answers the same whatever is wrong with
// its class.
func explainExpansion(claim *corev1.PersistentVolumeClaim, classes map[string]*storagev1.StorageClass, volumes string) string {
	class := ptr.Deref(claim.Spec.StorageClassName, "")
	switch {
	case class == "":
		return fmt.Sprintf("claim %s has no StorageClass, and Kubernetes lets no such claim grow: set storage back in %s", claim.Name, volumes)
	case classes != nil && classes[class] == nil:
		return fmt.Sprintf("claim %s may not grow, because its StorageClass %s does not exist: create it, with allowVolumeExpansion: true, if its driver can; there are: kubectl get storageclass; or set storage back in %s",
			claim.Name, class, volumes)
	}
	return fmt.Sprintf("claim %s may not grow: set allowVolumeExpansion: true on its StorageClass, if its driver can: kubectl -n %s describe pvc %s; or set storage back in %s",
		claim.Name, claim.Namespace, claim.Name, volumes)
}

// Quota is a ResourceQuota that does not let an object be made.
type Quota struct {
	// Name of the ResourceQuota.
	Name string
	// Adds is what the object would add, Used what there is without it, and Limit what there may be in
	// all, as Kubernetes writes them: cpu=2,memory=4Gi.
	Adds, Used, Limit string
}

// QuotaOf reads the answer to a write of an object; nil if no quota is in its way.
func QuotaOf(err error) *Quota {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	m := quotaText().FindStringSubmatch(err.Error())
	if m == nil {
		return nil
	}
	return &Quota{Name: m[1], Adds: m[2], Used: m[3], Limit: m[4]}
}

// quotaText matches what Kubernetes' admission plugin ResourceQuota answers: the
// quota, what is asked for beyond what is used, and the limit.
func quotaText() *regexp.Regexp {
	return regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (.*)$`)
}

// limitText matches what Kubernetes' admission plugin LimitRanger answers. It does
// not name the LimitRange.
func limitText() *regexp.Regexp {
	return regexp.MustCompile(`(maximum|minimum) storage usage per PersistentVolumeClaim is ([^,]+), but (?:request|limit) is ([^],]+)`)
}

// expansionText is part of what Kubernetes' admission plugin
// PersistentVolumeClaimResize answers.
const expansionText = "storageclass that provisions the pvc must support resize"
