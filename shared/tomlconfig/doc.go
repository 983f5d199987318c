// Package tomlconfig reads the TOML that users write into a spec.
//
// In go the text, the keys that the operators own, and the operators' own values; out come the
// file for the pod, or the problems: what is no TOML, and keys that a user must not set. It
// keeps what a configuration means, not how it was written: order and comments are not part of
// a Tree. It is pure.
package tomlconfig
