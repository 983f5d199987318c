package jobtemplate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// DescribeUnreadable says that the tool of a Restore cannot read its files, and what to do; empty if it can, or
// if the spec names another image. TiDB Lightning takes the time zone of a backup since pingcap/tidb#47414, and
// reads from Azure since pingcap/tidb#56606: every v7.5 and every v8.5 does.
func DescribeUnreadable(run v1alpha1.Run, f Files, g *v1alpha1.TiDBGroup) string {
	if run.RunKind() != v1alpha1.KindRestore || f.Physical || run.GetRunPod().Image != "" {
		return ""
	}
	v, err := version.ParseSemantic(g.Spec.Version)
	cannot, since := "read times in the time zone of a backup", version.MajorMinor(7, 5) //nolint:mnd // a version
	if f.Storage.Azblob != nil {
		cannot, since = "read from Azure", version.MajorMinor(8, 5) //nolint:mnd // a version
	}
	if err != nil || v.AtLeast(since) {
		return ""
	}
	return fmt.Sprintf("TiDB Lightning of %s cannot %s: name one of v%d.%d or later in spec.image, such as pingcap/tidb-lightning:v8.5.7 (of a TidbCluster in spec.bootstrapFrom.image)", g.Spec.Version, cannot, since.Major(), since.Minor())
}
