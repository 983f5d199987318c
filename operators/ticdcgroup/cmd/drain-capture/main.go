// Command drain-capture hands over what a TiCDC capture owns and copies, before its process stops.
// A hook of every TiCDC pod calls it; an init container of the operator's image copies it
// there.
package main

import (
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/drain"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

func main() { hook.Main("drain-capture", drain.Parse) }
