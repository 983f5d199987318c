// Package settings is the configuration of a TiKV or TiDB process as its status
// port shows and changes it: what is in the file, defaults for the rest, and what is
// taken while the process runs. What it does not know, or what has no value of the
// right kind, is refused in the words of the real server, all of a request or none
// of it.
package settings
