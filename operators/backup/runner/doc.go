// Package runner is the program backup-runner, which a Job of a Backup or a Restore runs in
// the image of the tool: it looks at the storage and the database before anything is
// written, runs Dumpling or TiDB Lightning, and leaves in the container's message how that
// ended, for the operator. It has no access to Kubernetes.
//
// A backup is a folder: data/ has the tool's files, and backup.json says whose they are
// and whether they are complete. Only files below a folder whose backup.json has the UID
// of the Backup are ever deleted.
package runner
