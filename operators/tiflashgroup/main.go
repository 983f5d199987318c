// Command tiflashgroup-operator runs the operator of TiFlashGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
