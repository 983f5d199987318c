// Package objects is what may be asked about all objects of a namespace at one
// moment: are they converged, what do their conditions say, how many are there.
// The rig's watcher, scenarios and the containers' suite speak of objects by it.
package objects
