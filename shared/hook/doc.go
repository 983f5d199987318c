// Package hook is what the programs share that operators bring into pods. The hooks of a
// component's container call them in the pod, so that they work without any operator, and they
// speak to PD.
//
// In go a command line and the pod's environment; out come calls to PD and an exit code. It
// imports the standard library only: the programs are copied into every pod and run in the
// memory of the component. With the operators' client of PD they would be seven times as large.
package hook
