// Package result is what the pod of a run leaves for the backup operator: the message of its
// container.
//
// In goes a Result, or the text of a message, which anything that runs in a pod may have
// written; out come the text, or the Result and whether it is one. tso.go turns time stamps of
// TiDB into times and back. It is pure.
package result
