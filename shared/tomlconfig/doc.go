// Package tomlconfig reads the TOML that users write into a spec, refuses the
// keys that the operators own, adds the operators' own and writes the result
// down. It keeps what a configuration means, not how it was written: order and
// comments are not part of a Tree. It is pure.
package tomlconfig
