package controller

// The umbrella stops nothing: what may be stopped is for each group's operator
// to say. Its one destructive step, deleting a group that the spec does not name
// any more, is guarded in act.go by a live read and preconditions, and keeps
// the claims.
