// Package labelling gives running members labels, for components whose members take them by a
// request and forget them when they restart.
//
// In go a group, its Instances and which labels each is to have; out come the members that lack
// them, and the work of giving them. What each was given is remembered.
package labelling
