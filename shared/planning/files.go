package planning

import (
	"slices"
)

// StoredFiles are the files of the stored revisions, by the name of the revision.
type StoredFiles map[string]map[string]string

// Others returns the files that a member may run with besides the wanted ones. A revision
// that is not stored any more may have had any; it has a nil entry.
func (f StoredFiles) Others(revisions ...string) []map[string]string {
	slices.Sort(revisions)
	var out []map[string]string
	for _, name := range slices.Compact(revisions) {
		if name != "" {
			out = append(out, f[name])
		}
	}
	return out
}
