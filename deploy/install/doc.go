// Package install renders an overlay of this module as the one file that a release
// has for it. In goes a directory and a version, out comes YAML for kubectl apply.
package install
