// Package mutants holds deliberate bugs of the suite and proves that the rig
// catches each of them: a rig that catches nothing proves nothing.
//
// A mutant is a file in bugs/: what the bug is, which promise of
// docs/reliability.md it breaks, the text of the suite that it replaces, the
// test that must fail because of it, and what that test must say:
//
//	bug: The operator of TiKVGroups does not wait for the PDGroup.
//	promise: P5
//	edits:
//	- file: operators/tikvgroup/controller/plan.go
//	  old: "Gate: start.Result,"
//	  new: "Gate: gate.Result{Open: true},"
//	test: ^TestScenarios$/^without-pdgroup$
//	says: 'violation: Instance b-0 is made although PDGroup a is not Ready'
//
// Nothing of the tree is changed: the compiler is given the changed files with
// -overlay. There are two results only, caught and NOT caught; a test that fails
// without saying what it should has not caught the bug. Each test is also run
// without any bug, and must pass.
//
// The tests of this package check that every mutant still fits the tree, and compiles; the
// command e2e/cmd/mutants runs them.
package mutants
