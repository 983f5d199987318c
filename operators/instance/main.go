// Command instance is the operator of Instances: it runs one pod with its
// claims for each, whatever component the pod holds.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/instance/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() {
	os.Exit(operator.Main(controller.Definition()))
}
