// Package docs writes the documents that are data elsewhere: docs/conditions.md
// from the table of conditions in apis, docs/reference/api.md from the CRDs. Its
// tests check the links and commands of all pages.
package docs
