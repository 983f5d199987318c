// Package rollout plans which slots of a group should exist, purely: no client,
// no clock. Slots are small numbers that never change hands; the lowest free
// one is filled first.
package rollout
