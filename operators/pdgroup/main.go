// Command pdgroup-operator runs the operator of PDGroups.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/pdgroup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
