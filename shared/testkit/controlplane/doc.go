// Package controlplane gives tests a Kubernetes API that is real: etcd and
// kube-apiserver as processes of their own, built from source by the sibling
// package binaries, with RBAC, the admission plug-ins of a cluster and the CRDs
// that the test names. Where a test depends on garbage collection, namespace
// deletion or the protection of claims, kube-controller-manager runs as well,
// with just these controllers.
//
// Nothing here needs root. Several control planes may run at once, in one
// process or in many: ports and directories are never shared.
//
// The processes never outlive the test. A test stops them with [ControlPlane.Stop];
// when it panics, times out or is killed instead, a guardian process notices
// that its pipe to the test has closed, kills what is left and removes the files.
//
// Packages with many tests start one control plane in TestMain and give every
// test a namespace:
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) { plane = cp }))
//	}
package controlplane
