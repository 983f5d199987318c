// Command handover gives the leaders of a TiKV store away before its process stops,
// and lets it lead again afterwards. The hooks of every TiKV pod call it; an init
// container of the operator's image copies it there.
package main

import (
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/handover"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

func main() { hook.Main("handover", handover.Parse) }
