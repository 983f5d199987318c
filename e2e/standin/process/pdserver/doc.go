// Package pdserver is a tiny PD for the tests of the other stand-ins: a real
// etcd, the calls of pdpb that a store makes and the two HTTP paths that it
// reads, on one port like the real one. It schedules nothing.
package pdserver
