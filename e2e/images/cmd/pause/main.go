// Command pause holds a pod's namespaces open: it is the first process of every
// pod of the local cluster and does nothing but end when it is told to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	// A sandbox with a shared process namespace makes this process the parent
	// of orphans; ignoring SIGCHLD lets the kernel reap them.
	signal.Ignore(syscall.SIGCHLD)
	<-stop
}
