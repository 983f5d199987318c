// Package release writes what a release consists of into one directory: the images
// of the operators for all platforms as an OCI layout, one file to install per overlay,
// a bill of materials per operator, and a checksum of every file. In goes a version and
// a commit; the same version and commit give the same bytes.
package release
