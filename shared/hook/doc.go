// Package hook is what the programs share that the operators bring into pods: they are
// called by the hooks of a component's container, in the pod, so that they work without
// any operator, and speak to PD.
//
// It imports the standard library only. The programs are copied into every pod and run
// in the memory of the component; with the operators' client of PD they would be seven
// times as large.
package hook
