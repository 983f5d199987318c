// Package images builds the container images of the local cluster without a
// container engine and without a registry: static binaries are compiled from
// this repository (or taken from the binaries that the test kit built), put into
// one-layer OCI images with fixed timestamps, and written as archives that
// `ctr images import` understands.
//
// Building the same content twice gives the same digest, so that an image that
// a node already holds is recognised by its digest and never imported again.
// Archives are cached by content; the go tool's own build cache makes an
// unchanged binary cost nothing.
package images
