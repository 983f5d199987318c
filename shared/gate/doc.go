// Package gate reads other operators' conditions: what a group waits for before its pods start.
// A gate accepts a condition only if it was computed for the object's current generation: an
// answer to an older question is no answer.
//
// In go the objects that are waited for; out comes whether the gate is open and, if not, what
// it waits for and who must act. It is pure.
package gate
