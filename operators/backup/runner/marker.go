package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// markerFile is the file of a folder that says whose backup it is.
const markerFile = "backup.json"

// marker is the content of backup.json.
type marker struct {
	// UID of the Backup.
	UID string `json:"uid"`
	// Physical says that BR has written the files.
	Physical bool `json:"physical,omitempty"`
	// Log says that TiKV writes a log there, of the LogBackup with the UID; it is never complete.
	Log bool `json:"log,omitempty"`
	// Complete says that all files are there.
	Complete bool `json:"complete"`
	// Server is the version of the database that was copied.
	Server string `json:"server,omitempty"`
	// TSO that the copy shows the database at.
	TSO string `json:"tso,omitempty"`
	// Bytes of the files.
	Bytes int64 `json:"bytes,omitempty"`
}

func (p *place) markerKey() string { return p.Folder + "/" + markerFile }

// marker reads the marker; nil if there is none.
func (p *place) marker(ctx context.Context) (*marker, error) {
	text, err := p.bucket.ReadAll(ctx, p.markerKey())
	switch {
	case codeOf(err) == gcerrors.NotFound:
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, p.told("read "+markerFile+" in", err)
	}
	out := &marker{}
	if err := json.Unmarshal(text, out); err != nil || out.UID == "" {
		return nil, fail(v1alpha1.ReasonFolderTaken, "%s of folder %s is none of a backup", markerFile, p.Folder)
	}
	return out, nil
}

// begin writes the marker of a backup that is not complete. It fails if somebody else has
// just written one, where the storage knows writes that have a condition.
func (p *place) begin(ctx context.Context, m marker) error {
	err := p.write(ctx, m, &blob.WriterOptions{IfNotExist: true})
	if codeOf(err) == gcerrors.FailedPrecondition {
		return fail(v1alpha1.ReasonFolderTaken, "folder %s of %s was taken by another backup meanwhile", p.Folder, p.name())
	}
	return p.told("write "+markerFile+" to", err)
}

// finish writes the marker of a backup that is complete, if it is still that of the Backup:
// files of two would be mixed.
func (p *place) finish(ctx context.Context, m marker) (marker, error) {
	there, err := p.marker(ctx)
	switch {
	case err != nil:
		return m, err
	case there == nil || there.UID != m.UID:
		return m, fail(v1alpha1.ReasonFolderTaken, "folder %s of %s was taken by another backup meanwhile: the files of both are mixed", p.Folder, p.name())
	}
	if m.Bytes, err = p.size(ctx); err != nil {
		return m, err
	}
	m.Complete = true
	return m, p.told("write "+markerFile+" to", p.write(ctx, m, nil))
}

func (p *place) write(ctx context.Context, m marker, options *blob.WriterOptions) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", markerFile, err)
	}
	return p.bucket.WriteAll(ctx, p.markerKey(), text, options)
}
