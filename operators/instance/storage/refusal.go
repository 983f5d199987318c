package storage

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Refusal is why the API server does not let a claim be made or changed, and who
// can mend that.
type Refusal struct {
	// Reason of a condition.
	Reason string
	// Message for a person. It holds nothing that other claims of the namespace
	// change, such as how much of a quota is used.
	Message string
}

// RefusalOf reads the answer to a write of the claim of a name; nil if it is not
// one that a person has to mend outside the group.
func RefusalOf(namespace, name string, err error) *Refusal {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	if m := quotaText().FindStringSubmatch(err.Error()); m != nil {
		return &Refusal{v1alpha1.ReasonQuotaExceeded, fmt.Sprintf(
			"ResourceQuota %s is too small for claim %s (it adds %s, the limit is %s): raise it: kubectl -n %s edit resourcequota %s; or set storage back in the group's volumes",
			m[1], name, m[2], m[3], namespace, m[1])}
	}
	if m := limitText().FindStringSubmatch(err.Error()); m != nil {
		return &Refusal{v1alpha1.ReasonLimitRangeExceeded, fmt.Sprintf(
			"a LimitRange wants claims to ask for a %s of %s, and claim %s is to ask for %s: change it: kubectl -n %s get limitrange; or set storage back in the group's volumes",
			m[1], m[2], name, m[3], namespace)}
	}
	if strings.Contains(err.Error(), expansionText) {
		return &Refusal{v1alpha1.ReasonClaimRejected, fmt.Sprintf(
			"claim %s may not grow: set allowVolumeExpansion: true on its StorageClass, if its driver can: kubectl -n %s describe pvc %s; or set storage back in the group's volumes",
			name, namespace, name)}
	}
	return nil
}

// quotaText matches what Kubernetes' admission plugin ResourceQuota answers: the
// quota, what is asked for beyond what is used, and the limit.
func quotaText() *regexp.Regexp {
	return regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.*), used: .*, limited: (.*)$`)
}

// limitText matches what Kubernetes' admission plugin LimitRanger answers. It does
// not name the LimitRange.
func limitText() *regexp.Regexp {
	return regexp.MustCompile(`(maximum|minimum) storage usage per PersistentVolumeClaim is ([^,]+), but (?:request|limit) is ([^],]+)`)
}

// expansionText is part of what Kubernetes' admission plugin
// PersistentVolumeClaimResize answers.
const expansionText = "storageclass that provisions the pvc must support resize"
