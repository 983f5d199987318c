// Package scenario tells what happens to a database and what has to come of it,
// as data: one YAML file each in e2e/scenarios, run by the rig and by the campaigns;
// those that name the world "containers" alone are run by the containers' suite.
//
// A file has a name, one sentence on what it shows, the ids of the promises and
// parity items that it bears on, options of the world, manifests by name, and
// steps, which are carried out one after the other:
//
//	name: scale-out-tikv
//	shows: More stores join a living cluster, and no pod is replaced.
//	bears: [KV-02, P6]
//	use: [groups]                # e2e/scenarios/manifests/groups.yaml
//	steps:
//	- apply: [pd, tikv, tidb]    # manifests by name; *.yaml is a file of deploy/samples
//	- await: {converged: [PDGroup a, TiKVGroup b, TiDBGroup c]}
//	- scale: {object: TiKVGroup b, replicas: 5}
//	- await: {converged: [TiKVGroup b], count: {Pod b-: 5}}
//	- expect: {restarts: {}, bootstraps: 1, claimsKept: true}
//
// [Step] lists the verbs, [Holds] what may be awaited and expected. A field that
// does not exist is an error, and so is a step with two verbs. A step "permute"
// makes one scenario of each order, see [Scenario.Variants].
//
// A workload may run under the steps, which operations are then judged by:
//
//   - workload: {tidbGroup: c, passwordFrom: c-root/password}
//   - operation:
//     name: roll of TiKV
//     failed: 0                  # statements, at most
//     pause: 3s                  # of any session, at most
//     steps:
//   - patch: {object: TiKVGroup b, merge: {spec: {restartedAt: "2026-01-01T00:00:00Z"}}}
//   - await: {converged: [TiKVGroup b]}
//
// It ends with the scenario, or with a step {workload: {end: true}}, and reads back every row that
// the database has acknowledged: see package workload.
//
// [Run] runs a scenario in a [World], which says no to a step that it cannot do;
// a scenario says in which worlds it runs. What comes of it is a [Result], which
// a campaign compares with the one of an undisturbed run.
package scenario
