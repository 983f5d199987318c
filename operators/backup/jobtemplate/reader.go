package jobtemplate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// DescribeUnreadable says that the tool of a Restore cannot read its files, and what to do; empty if it can, or
// if the spec names another image. TiDB Lightning reads from Azure since pingcap/tidb#56606, which
// every v8.5 has.
func DescribeUnreadable(run v1alpha1.Run, f Files, g *v1alpha1.TiDBGroup) string {
	if run.RunKind() != v1alpha1.KindRestore || f.Physical || f.Storage.Azblob == nil || run.GetRunPod().Image != "" {
		return ""
	}
	v, err := version.ParseSemantic(g.Spec.Version)
	if err != nil || v.AtLeast(version.MajorMinor(8, 5)) { //nolint:mnd // a version
		return ""
	}
	return fmt.Sprintf("TiDB Lightning of %s cannot read from Azure: name one of v8.5 or later in spec.image, such as pingcap/tidb-lightning:v8.5.7 (of a TidbCluster in spec.bootstrapFrom.image)", g.Spec.Version)
}
