// Package objectstore runs servers of object storage for tests, whose buckets are folders:
// versitygw for S3, fake-gcs-server for Google Cloud Storage.
//
// In go an address and a folder; out come a server that runs until its context ends, buckets in
// it, and the files that they hold.
package objectstore
