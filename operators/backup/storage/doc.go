// Package storage reaches the files of a backup, on a volume or in a bucket of S3, Google or
// Azure, and says whose they are.
//
// In goes where they are and with which keys; out come a Place to read and write, what the
// tools are configured for it, and errors that name what is missing, refused or unreachable. A
// folder's marker, backup.json, says whose backup it is and whether it is complete: only
// files below a marker with the UID of the Backup are ever deleted.
//
// amazon.go and cloud.go connect, marker.go and folder.go keep the folder, cause.go has the errors. It
// imports failure alone.
package storage
