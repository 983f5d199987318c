// Package handover gives the leaders of a TiKV store away before its process is
// stopped, by whomever, and lets the store lead again once its process has started.
// It runs in the store's own container, by the hooks of its pod, so that it works
// without any operator. It asks only PD.
//
// What it orders PD is recorded in a file beside the store's data, before PD is
// asked: only what is recorded there is undone. What a user or an operator
// keeps away from the store has no such file, and stays.
package handover
