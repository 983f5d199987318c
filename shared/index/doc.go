// Package index finds the objects of one cluster in a cache without a look at all others.
// Of each kind that is watched, the cache keeps an index by the labels that name a cluster, a
// group and an Instance, and of groups by their PDGroup and TidbCluster. A List of a namespace that asks
// for one of them takes its candidates from the index; all other Lists are as before.
package index
