// Command coredns is CoreDNS with the plugins that the Corefile of the local cluster
// names (e2e/localcluster/manifests/addons.yaml). Most of what the others need to be
// compiled are clients of clouds.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
