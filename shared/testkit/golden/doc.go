// Package golden compares values with recorded ones.
//
// In go a value and the name of a file; out comes a failure of the test if the value, as JSON,
// is not what the file holds. With UPDATE_GOLDEN set, the file is written first.
package golden
