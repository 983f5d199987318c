// Package containers runs scenarios on a complete Kubernetes: kubelets, containers,
// a real PD and TiDB, a network. What the rig simulates is real here, and what only
// a simulation can tell (requests by operator, leaders at the end of a process) is
// not known.
package containers
