// Package schema makes what a logical backup has and TiDB Lightning does not make: placement
// policies and sequences.
//
// In go the files that Dumpling has written, and the database; out come an error, or nothing.
//
// It imports database, failure and storage.
package schema
