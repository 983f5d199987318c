// Package persisted knows which items of pd.toml PD keeps in its own storage: it reads them
// from the file when it bootstraps a cluster and never again, and takes them through its API
// while it runs.
//
// In go files and what PD shows; out come the items that PD lacks, and whether an edit of the
// file applies online. Everything is pure.
package persisted
