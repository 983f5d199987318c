// Package loopback gives tests addresses to listen on, and servers, that are theirs alone.
//
// In goes a test; out comes an IP address of its own out of 127.224.0.0 to 127.254.255.255,
// where every port is free, and stays free while it is closed for a while. A port that was free
// a moment ago may be another process's by now, so nothing is looked for here. A process takes
// these addresses 254 at a time, and holds a port on each such block for as long as it runs:
// that keeps the tests of other packages off it.
package loopback
