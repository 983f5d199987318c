// Package bench measures what the operators cost: how long many clusters take until
// they are Ready, what the operators write and ask of the API server, and how much
// processor time each of them uses.
//
// In goes a control plane (a real kube-apiserver with its etcd) and a [Case]; out
// comes a [Result] of counts and times. The operators run in this process beside the
// simulated databases and pods of package rig. Every goroutine that an operator
// starts carries its name, so a profile of the process tells the operators' share.
// What the garbage collector uses is no operator's, and told apart.
package bench
