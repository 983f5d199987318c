// Package handover gives the leaders of a TiKV store away before its process is stopped,
// whatever stops it, and lets the store lead again once its process has started. It runs in the store's
// own container, by the hooks of its pod, so that it works without any operator.
//
// In go the store's address and PD's; out come orders to PD, and an error if leaders are left.
// What it has told PD is recorded in a file beside the store's data, before PD is told: by that
// alone is taken back what it has begun. What a user or an operator keeps away from the store
// has no such file, and stays.
package handover
