// Package session is what a user does with a cluster, for programs: apply
// files, follow the objects until they are as wished, look at the tree.
package session
