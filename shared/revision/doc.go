// Package revision keeps what a group's members are made of. A Record is the rendered template
// with its claims and configuration files.
//
// In go a Record and the ControllerRevisions that are stored; out comes the Target: the Record
// to use, and the hash that names it. While the user's part of the spec stays the same the
// stored rendering is used, whatever the operator would render today: upgrading an operator
// changes no pod. Difference says whether going from one template to another needs a restart,
// and why.
package revision
