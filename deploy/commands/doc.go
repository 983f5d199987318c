// Package commands holds the test that runs the commands of the pages: each kubectl of a
// page, typed as it stands there, with the real kubectl and a real API server that has what
// the page presumes. It has no code of its own.
package commands
