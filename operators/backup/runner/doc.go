// Package runner is the program backup-runner, which a Job of a Backup or a Restore runs in
// the image of the tool: it looks at the storage and the database before anything is
// written, runs Dumpling, TiDB Lightning or BR, and leaves in the container's message how that
// ended, for the operator. It has no access to Kubernetes.
//
// In goes a command line; out come files, or data, and a result. A backup is a folder: data/ has
// the tool's files, and backup.json says whose they are and whether they are complete.
//
// flags.go reads the command line, backup.go and restore.go have the logical runs,
// physical.go, point.go and log.go those of BR, tool.go runs a tool. It imports storage,
// database, cluster and failure.
package runner
