// Package persisted knows which items of pd.toml PD keeps in its own storage: it reads them
// from the file when it bootstraps a cluster and never again, and takes them through its API
// while it runs.
//
// In go files, the PDGroup and what PD shows; out come the items that PD lacks and is to be
// given, whether an edit of the file applies online, and what became of what PD was given.
// given.go is the component.OnlineConfig of PD. Everything is pure.
package persisted
