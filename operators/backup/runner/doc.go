// Package runner is the program backup-runner, which a Job of a Backup or a Restore runs in the
// image of the tool. It has no access to Kubernetes.
//
// In goes a command line; out come files, or data, and a result in the container's message. A
// backup is a folder: data/ has the tool's files, and backup.json says whose they are and
// whether they are complete. Storage and database are looked at before anything is written.
//
// flags.go reads the command line, backup.go and restore.go have the logical runs, physical.go,
// point.go and log.go those of BR, tool.go runs a tool.
package runner
