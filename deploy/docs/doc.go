// Package docs writes the documents that are data elsewhere: docs/conditions.md
// from the table of conditions in apis, docs/reference/api.md from the CRDs; and it
// reads all pages, for tests of their links, examples and commands.
package docs
