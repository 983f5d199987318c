// Package origin reports where a user edits what a group is asked for: in the group itself;
// in the TidbCluster that made it, which sets the group back; or in the Instance, if it has no
// group.
//
// In goes a group or an Instance; out come the path of a field as it is there, and the
// command that edits it. Messages take both from here, so that they work when pasted. It is
// pure.
package origin
