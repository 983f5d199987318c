package planning

import (
	"slices"
)

// StoredFiles are the files of the revisions that are stored, by the revision's name.
type StoredFiles map[string]map[string]string

// Others returns what an Instance's member may run with besides what is wanted.
// A revision that is not stored any more may have said anything.
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
