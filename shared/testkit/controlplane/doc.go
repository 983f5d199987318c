// Package controlplane gives tests a Kubernetes API that is real: etcd and kube-apiserver as
// processes of their own, with RBAC, the admission plug-ins of a cluster and, where it is asked
// for, kube-controller-manager.
//
// In go Options, such as the CRDs; out comes a control plane, with a configuration to reach it.
// Nothing here needs root, and several may run at once. The processes never outlive the test:
// when it panics or is killed, a guardian process kills what is left and removes the files.
// Packages with many tests start one in TestMain, by Main, and give every test a namespace.
package controlplane
