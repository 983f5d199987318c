// Command ticdcgroup-operator runs the operator of TiCDCGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
