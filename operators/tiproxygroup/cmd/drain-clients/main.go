// Command drain-clients waits until no client is connected to a TiProxy any more, before its
// process stops. A hook of every TiProxy pod calls it; an init container of the operator's
// image copies it there.
package main

import (
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/drain"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

func main() { hook.Main("drain-clients", drain.Parse) }
