// Package podtemplate decides what pod an Instance asks for, and how it differs from the pod
// that runs: whether that takes a restart and why, or which labels, annotations and owner
// change in place.
//
// In go an Instance, its decoded pod template and the pod that runs; out come a pod to make, a
// revision.Change or the body of a patch. Whether the pod may be stopped is not asked here.
//
// It is pure. Of this operator it imports planning and podstate, which knows whose a pod is.
package podtemplate
