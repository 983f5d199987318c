// Package canonical compares objects by what they say, however it is written.
//
// In go values as they are encoded in JSON. Out come a hash that a field left empty does not
// change, whether one value holds all that another says, and what of a group's spec means
// something though it is empty.
package canonical
