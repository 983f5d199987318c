// Package onlineconfig decides how a changed configuration reaches members that run: what
// they take without a restart is sent to them, and their Instances get the new revision
// when they show it.
//
// In goes the difference of an Instance to its spec; out come updates to send, or the
// reason for a restart. Everything is pure.
package onlineconfig
