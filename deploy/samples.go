package deploy

import (
	"embed"
	"io/fs"
)

//go:embed samples/*.yaml
var samples embed.FS

// Samples returns the files of deploy/samples as they were when the program was
// built.
func Samples() (fs.FS, error) { return fs.Sub(samples, "samples") }
