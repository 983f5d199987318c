package storestate

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// MarkOf returns what the planner is doing to a member, by its annotation on the Instance.
func MarkOf(i *v1alpha1.Instance) member.Verb {
	return member.Verb(i.Annotations[v1alpha1.AnnotationDisruption])
}
