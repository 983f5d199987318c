// Package statusports asks running members of groups that are changing what they say of themselves
// on their status ports, and remembers it.
//
// In: the Instances of a group, how a member is asked, and which states are final. Out: the
// answers by Instance, and an event when one is new.
package statusports
