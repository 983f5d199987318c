// Package gate reads other operators' conditions. A gate accepts a condition
// only if it was computed for the object's current generation: an answer to an
// older question is no answer.
package gate
