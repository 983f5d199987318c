// Package binaries finds the programs that tests and the local cluster run, such as
// kube-apiserver, etcd and controller-gen, and builds each from source when it is asked for the
// first time.
//
// In goes the name of a program; out comes its path. Every program is a package of a Go module
// that a tool module under shared/tools pins. It is built once per user and kept under
// $TIDB_GROUPS_CACHE/bin/<tool module>-<version>-<hash>/<program>. The hash covers the pins and
// the build flags, so that a change of either never overwrites a program that something still
// runs. A file lock serialises builds, and a program appears under its name only once it is
// complete.
package binaries
