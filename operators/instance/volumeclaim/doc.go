// Package volumeclaim decides about the claims of an Instance: which are its own, which are
// lost, rejected or retired, which are made, labelled, grown or recreated, and which of a
// deleted Instance are retained, retired or deleted.
//
// In goes the Snapshot; out come entries of the plan, outcomes that say what keeps a claim
// from being used or changed, and status.volumes, which records the claim that a pod may be
// started with. A claim that another has made, or a user has given, is never deleted.
//
// It is pure. Of this operator it imports observation, planning and storage.
package volumeclaim
