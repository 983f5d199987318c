package storestate

import (
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// IsTiFlash reports whether a store holds columns; such a store has learners
// only, and no majority counts on it.
func IsTiFlash(s pd.Store) bool {
	for key, value := range s.Labels {
		if strings.EqualFold(key, EngineLabel) {
			return strings.HasPrefix(value, "tiflash")
		}
	}
	return false
}

// EngineLabel is by which PD tells TiFlash from TiKV.
const EngineLabel = "engine"

// PodName is the pod that a store's address names.
func PodName(s pd.Store) string {
	name, _, _ := strings.Cut(s.Address, ".")
	return name
}

// MarkOf returns what the planner is doing to a member, by its annotation on the Instance.
func MarkOf(i *v1alpha1.Instance) member.Verb {
	return member.Verb(i.Annotations[v1alpha1.AnnotationDisruption])
}
