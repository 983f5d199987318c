// Package sqljob decides which entry of spec.sql runs when, and renders the Job that
// runs it. It is pure.
//
// A Job's name says group, entry and revision, so that making it twice makes one. It
// is kept until its end stands in status, and a new one is made only where neither
// reports that the revision has run: so none runs twice, whenever the operator dies.
package sqljob
