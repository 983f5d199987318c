// Package accessreview decides who may read the metrics of an operator.
//
// In goes a request with a bearer token. Out comes leave to read, if the API server knows
// the token and lets its owner get the path. Questions to the API server are bounded in
// number and time, whatever sends requests.
package accessreview
