// Package loopback gives tests addresses to listen on that are theirs alone.
//
// A port that was free a moment ago may be another process's by now: the kernel
// gives it to the next connection or listener that asks for any. So nothing is
// looked for here. Every call gets an IP address of its own out of 127.224.0.0
// to 127.254.255.255, where every port is free, and stays free while it is
// closed for a while. A process takes these addresses 254 at a time, and holds
// a port on each such block for as long as it runs, which keeps the tests of
// other packages, that run at the same time, off it.
package loopback
