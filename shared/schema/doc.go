// Package schema compares the fields that the CRDs in a cluster have with those that an operator
// knows. Server-side apply refuses a write as a whole that has a field which the CRD lacks.
//
// In goes what the API server publishes of the suite's kinds; out come the CRDs that are older,
// each with a field that it lacks.
package schema
