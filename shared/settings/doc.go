// Package settings is the configuration that members take while they run. Which items there
// are, and how a member is asked, is each component's own.
//
// In go two versions of a file, and the running members; out come whether one can take the
// place of the other without a restart, what a member was last seen to run with, and the orders
// that give it what it lacks.
package settings
