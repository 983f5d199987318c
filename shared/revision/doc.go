// Package revision keeps what a group's members are made of. A Record is the
// rendered template with its claims and configuration files; it is stored in a
// ControllerRevision under the hash of the user's inputs that it was rendered
// from. While the inputs stay the same the stored rendering is used, whatever
// the operator would render today: upgrading an operator changes no pod.
//
// Difference answers, as one pure function, whether going from one template to
// another needs a restart, and why.
package revision
