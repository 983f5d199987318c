// Command resign has the leader of PD hand over before its process stops. The hook of
// every PD pod calls it; an init container of the operator's image copies it there.
package main

import (
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/resign"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

func main() { hook.Main("resign", resign.Parse) }
