// Package tree draws what waits for what: clusters, their groups and Instances
// as a tree, each with its state and, where it is not what its spec asks for,
// the reason. Drawing is pure; the demo and the kubectl plug-in share it.
package tree
