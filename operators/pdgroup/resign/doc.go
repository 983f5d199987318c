// Package resign has the leader of PD hand over to another member before its process is
// stopped, whatever stops it. It runs in the member's own container, by the preStop hook of its pod,
// so that it works without any operator, and asks the member itself.
//
// In go the member's name and address; out comes a return when another member leads, or an
// error that says why the process stops as the leader. A PD whose leader stops with it elects
// another one within about 7 s: etcd's election, and the lease that the leader held. A PD that
// hands over takes less than 3 s.
package resign
