// Package sqljob decides which entry of spec.sql runs when, and renders the Job that runs it.
//
// In go the TiDBGroup, its Jobs and how their pods ended; out come Jobs to make and to delete,
// and what status says. A Job's name says group, entry and revision, so that making it twice
// makes one. It is kept until its end stands in status, and a new one is made only where
// neither reports that the revision has run: so none runs twice, whenever the operator dies. It
// is pure.
package sqljob
