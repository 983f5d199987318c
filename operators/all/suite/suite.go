package suite

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	backup "github.com/tidb-groups/tidb-groups/operators/backup/controller"
	instance "github.com/tidb-groups/tidb-groups/operators/instance/controller"
	pdgroup "github.com/tidb-groups/tidb-groups/operators/pdgroup/controller"
	ticdcgroup "github.com/tidb-groups/tidb-groups/operators/ticdcgroup/controller"
	tidbcluster "github.com/tidb-groups/tidb-groups/operators/tidbcluster/controller"
	tidbgroup "github.com/tidb-groups/tidb-groups/operators/tidbgroup/controller"
	tiflashgroup "github.com/tidb-groups/tidb-groups/operators/tiflashgroup/controller"
	tikvgroup "github.com/tidb-groups/tidb-groups/operators/tikvgroup/controller"
	tiproxygroup "github.com/tidb-groups/tidb-groups/operators/tiproxygroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// Program is the program that runs every operator.
func Program() operator.Program {
	return operator.Program{Name: v1alpha1.OperatorAll, Operators: []operator.Definition{
		instance.Definition(), pdgroup.Definition(), tikvgroup.Definition(), tidbgroup.Definition(), tiflashgroup.Definition(),
		tiproxygroup.Definition(), ticdcgroup.Definition(), tidbcluster.Definition(), backup.Definition(),
	}}
}
