// Package status writes what an operator has found.
//
// In go an object, its status before and after, and the conditions that have turned; out come
// one write per reconcile, only if something differs, and an Event per condition that has
// turned. Words that no operator acts on wait for a second. Journal writes every Event into the
// log as well.
package status
