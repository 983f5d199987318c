// Package job decides what becomes of a Backup or a Restore, and renders the Jobs that carry
// it out. It is pure.
//
// A Job's name says object and attempt, so that making it twice makes one. Its pod leaves a
// result (package runner). One that failed before it wrote anything is tried again; one that
// had begun is not. A Job is kept until its end stands in status.
package job
