// Package settings is the configuration that members take while they run: which
// items of a file a component takes, whether one file can take the place of another
// without a restart, what a running member was last seen to run with, and giving it
// what it lacks. Which items there are and how a member is asked are each
// component's own.
package settings
