// Package refusal decides what an answer of the API server to a write means: whether it is
// asked again and when, whether a user must act, and which field or quota is in the way.
//
// In go the Snapshot, the object that was written and the error; out comes the outcome of
// the write. storage reads the words of Kubernetes' admission plugins for it.
//
// It is pure. Of this operator it imports observation, planning and storage.
package refusal
