// Command tikvgroup-operator runs the operator of TiKVGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
