// Package workload renders what the members of every component have in common:
// labels, Services and the pod around the component's own container. All of it
// is pure. Whatever a user gets wrong comes back as problems, each naming
// field, value and remedy.
package workload
