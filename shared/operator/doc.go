// Package operator is the one main that every operator binary shares: flags,
// logging, the manager with its caches, leader election, health, metrics, and a
// graceful end. An operator says only what is its own in a Definition.
package operator
