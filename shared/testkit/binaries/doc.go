// Package binaries finds the programs that tests and the local cluster run
// (kube-apiserver, etcd, kubelet, controller-gen, ...), and builds each from
// source when it is asked for the first time.
//
// Every program is a package of a Go module that a tool module under
// shared/tools pins. A program is built once per user and kept under
//
//	$TIDB_GROUPS_CACHE/bin/<tool module>-<version>-<hash>/<program>
//
// ($TIDB_GROUPS_CACHE defaults to tidb-groups below [os.UserCacheDir]). The hash
// covers the pins and the build flags, so that changing either builds again and
// never overwrites a program that something still runs. A file lock serialises
// builds of one tool module between processes, and a program appears under its
// name only once it is complete.
package binaries
