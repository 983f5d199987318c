package planning

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// StoredFiles are the files of the stored revisions, by the name of the revision.
type StoredFiles map[string]map[string]string

// OtherFiles returns the files that a member may run with besides the wanted ones. A revision
// that is not stored any more may have had any; it has a nil entry.
func (f StoredFiles) OtherFiles(revisions ...string) []map[string]string {
	slices.Sort(revisions)
	var out []map[string]string
	for _, name := range slices.Compact(revisions) {
		if name != "" {
			out = append(out, f[name])
		}
	}
	return out
}

// DecodeStoredFiles decodes the stored revisions, and adds the files of the wanted one.
func DecodeStoredFiles(s observation.Snapshot, target revision.Target) (StoredFiles, error) {
	out := StoredFiles{}
	for _, object := range s.Revisions {
		r, err := revision.Decode(object)
		if err != nil {
			return nil, err
		}
		hash, err := r.Hash()
		if err != nil {
			return nil, err
		}
		out[hash] = r.Files
	}
	out[target.Hash] = target.Files
	return out, nil
}
