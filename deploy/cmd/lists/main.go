// Command lists completes the lists of all groups that manifests and RBAC markers hold. It
// runs in the module's directory, before the manifests that depend on markers are made.
package main

import (
	"fmt"
	"os"

	"github.com/tidb-groups/tidb-groups/deploy/lists"
)

func main() {
	if err := lists.WriteAll(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
