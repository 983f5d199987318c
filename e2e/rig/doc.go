// Package rig runs the suite's operators against a real kube-apiserver and a
// simulated rest of the world, in one process: a pod actor in place of
// scheduler, kubelet and volume binder, and the database model in place of the
// database. It is what every promise of the suite is tested on.
//
// A [Rig] is one namespace. [New] starts its pod actor and its [Watcher], which
// looks at every version of every object with its own watch and fails the test
// when an invariant breaks. The test starts and stops operators by name, applies
// objects, and waits with [Rig.Await] for what should come of it. When the test
// ends, the rig fails it for every alarm of the model and every violation that
// the watcher has seen.
//
//	r := rig.New(t, plane, rig.Options{})
//	r.Start(rig.Operators()...)
//	r.Apply(cluster)
//	r.AwaitReady(v1alpha1.KindTidbCluster, "basic")
//
// The model keeps what a member knows on its claim: an emptied claim is an
// emptied member. Operators reach PD over TCP and HTTP with their own client.
package rig
