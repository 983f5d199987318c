// Package topology says which labels a member of the database gets from the
// node that it runs on and from its user. It is pure.
package topology
