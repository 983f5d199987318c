// Package podstate decides in which state an Instance's pod is and what a user can do
// about it: whose the pod is, whether it starts, runs, crashes, has ended or is being
// stopped, which node it waits for, which readiness gate is not open, and when a wait has become a
// matter for a user.
//
// In go the Snapshot and the plan; out come outcomes with a reason, a message that names who
// must act, and when to look again. What is done with the pod, the controller decides.
//
// It is pure. Of this operator it imports observation and planning.
package podstate
