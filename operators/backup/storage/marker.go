package storage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// MarkerFile is the file of a folder that says whose backup it is.
const MarkerFile = "backup.json"

// Marker is the content of backup.json.
type Marker struct {
	// UID of the Backup.
	UID string `json:"uid"`
	// Attempt is another one for each run of the Backup. A run whose node is cut off may go on
	// when the next one has begun.
	Attempt string `json:"attempt,omitempty"`
	// Data is the folder of the tool's files, in that of the backup; "data" if empty.
	Data string `json:"data,omitempty"`
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
	// TimeZone that TIMESTAMP stands in in files of SQL; empty for that of the database.
	TimeZone string `json:"timeZone,omitempty"`
	// Bytes of the files.
	Bytes int64 `json:"bytes,omitempty"`
}

// NewMarker returns the marker of a run that begins, with a folder of its own for its files:
// those of a run that was cut off and goes on have the same names.
func NewMarker(uid, server string) Marker {
	attempt := rand.Text()
	return Marker{UID: uid, Attempt: attempt, Data: DataFolder + "/" + attempt, Server: server}
}

func (p *Place) markerKey() string { return p.Folder + "/" + MarkerFile }

// Marker reads the marker; nil if there is none.
func (p *Place) Marker(ctx context.Context) (*Marker, error) {
	text, err := p.Blobs.ReadAll(ctx, p.markerKey())
	switch {
	case codeOf(err) == gcerrors.NotFound:
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, p.WrapError("read "+MarkerFile+" in", err)
	}
	out := &Marker{}
	if err := json.Unmarshal(text, out); err != nil || out.UID == "" {
		return nil, failure.New(v1alpha1.ReasonFolderTaken, "%s of folder %s is not a backup's", MarkerFile, p.Folder)
	}
	return out, nil
}

// Begin writes the marker of a backup that is not complete. It fails if another run has
// just written one, where the storage knows writes that have a condition.
func (p *Place) Begin(ctx context.Context, m Marker) error {
	err := p.write(ctx, m, &blob.WriterOptions{IfNotExist: true})
	if codeOf(err) == gcerrors.FailedPrecondition {
		return failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s was taken by another backup meanwhile", p.Folder, p.Name())
	}
	return p.WrapError("write "+MarkerFile+" to", err)
}

// Finish writes the marker of a backup that is complete, if no other run has begun meanwhile.
func (p *Place) Finish(ctx context.Context, m Marker) (Marker, error) {
	there, err := p.Marker(ctx)
	switch {
	case err != nil:
		return m, err
	case there == nil || there.UID != m.UID || there.Attempt != m.Attempt:
		return m, failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s was taken by another backup meanwhile", p.Folder, p.Name())
	}
	if m.Bytes, err = p.sumSizes(ctx); err != nil {
		return m, err
	}
	m.Complete = true
	return m, p.WrapError("write "+MarkerFile+" to", p.write(ctx, m, nil))
}

func (p *Place) write(ctx context.Context, m Marker, options *blob.WriterOptions) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", MarkerFile, err)
	}
	return p.Blobs.WriteAll(ctx, p.markerKey(), text, options)
}
