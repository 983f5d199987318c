// Command tidbcluster-operator runs the operator of TidbClusters.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/tidbcluster/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
