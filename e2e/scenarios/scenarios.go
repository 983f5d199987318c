// Package scenarios is the scenarios as files, one each, and the manifests that
// several of them share. Package scenario reads them and says what they mean.
package scenarios

import "embed"

// Files are the scenarios as they were when the program was built.
//
//go:embed *.yaml manifests/*.yaml
var Files embed.FS
