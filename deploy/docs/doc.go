// Package docs writes the documents that are data elsewhere: docs/conditions.md
// from the table of conditions in apis.
package docs
