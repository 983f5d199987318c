// Command tiproxygroup-operator runs the operator of TiProxyGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
