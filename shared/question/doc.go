// Package question asks members, and gives them orders, beside the reconciles: none waits for
// an answer.
//
// In go calls of members for a group; out comes an event for the group when there is news, and
// whether the group still has to wait for the first answers of its members.
package question
