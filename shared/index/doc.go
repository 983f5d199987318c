// Package index finds the objects of one cluster in a cache without a look at all others.
//
// In goes a List of a namespace by the labels of a cluster, a group or an Instance, or of
// groups by their PDGroup or TidbCluster. Out come the objects, with candidates from an index
// that the cache keeps of each watched kind. All other Lists are as before.
package index
