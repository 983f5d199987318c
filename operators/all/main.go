// Command all-operator runs all operators of the suite in one process, for small clusters:
// one cache, one connection to the API server and one lease in place of nine. Kinds that
// are not used cost next to nothing. It needs the rights of all of them.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/all/suite"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.MainOf(suite.Program())) }
