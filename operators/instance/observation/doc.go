// Package observation is what is known of an Instance when the next step is decided: its
// pod, its claims and their volumes, the StorageClasses, the node that a message is about.
//
// In goes what the controller has read, which fills a Snapshot. Out come answers to
// questions about it alone: is the Instance held, does its spec ask the pod to stop, which
// claims are recorded, on which nodes can a volume be used, which object does a user edit.
//
// It is pure: no client, no clock. It imports no other package of this operator.
package observation
