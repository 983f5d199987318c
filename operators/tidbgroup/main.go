// Command tidbgroup-operator runs the operator of TiDBGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
