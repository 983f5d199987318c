// Package workload renders what the members of every component have in common: labels, Services
// and the pod around the component's own container.
//
// In go a group and the component's container; out come objects and parts of a pod template,
// and problems with what the user gave, each with field, value and remedy. It is pure.
package workload
