package storage

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// Claim makes sure that the folder has no files of another owner. It returns the marker of a
// backup that is complete already, and removes what an earlier attempt has left.
func (p *Place) Claim(ctx context.Context, uid string) (*Marker, error) {
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return nil, err
	case m != nil && m.UID == uid && m.Complete:
		return m, nil
	case m != nil && m.UID == uid && !m.Log:
		_, err := p.Remove(ctx, uid)
		return nil, err
	case m != nil && !m.Complete && !m.Log:
		return nil, failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s has part of a backup, of a Backup with UID %s: create this one with another name, or delete the folder if that Backup is gone and has left it", p.Folder, p.Name(), m.UID)
	case m != nil:
		return nil, failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s has another backup, of a Backup with UID %s: create this one with another name", p.Folder, p.Name(), m.UID)
	}
	return nil, p.confirmEmpty(ctx)
}

// confirmEmpty refuses a folder that has files.
func (p *Place) confirmEmpty(ctx context.Context) error {
	return p.forEachFile(ctx, p.Folder, func(file *blob.ListObject) error {
		return failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s has files that belong to no backup, such as %s", p.Folder, p.Name(), file.Key)
	})
}

// ClaimLog makes sure that the folder has no files of another owner, and marks it.
func (p *Place) ClaimLog(ctx context.Context, uid string) error {
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return err
	case m != nil && (m.UID != uid || !m.Log):
		return failure.New(v1alpha1.ReasonFolderTaken, "folder %s of %s has another backup, with UID %s: create a LogBackup of another name", p.Folder, p.Name(), m.UID)
	case m != nil:
		return nil
	}
	if err := p.confirmEmpty(ctx); err != nil {
		return err
	}
	return p.Begin(ctx, Marker{UID: uid, Physical: true, Log: true})
}

// Files that BR writes when it starts a log: first the lock, and then what the log begins with.
const (
	logLock = "backup.lock"
	logMeta = "backupmeta"
)

// RemoveUnfinishedStart removes the lock of a log that was never started: the run was cut off before
// it had written what a log begins with. BR takes a folder with a lock for one that has a log, and
// never starts another there. No task writes to it yet.
func (p *Place) RemoveUnfinishedStart(ctx context.Context) error {
	begun, err := p.Blobs.Exists(ctx, path.Join(p.dataFolder(), logMeta))
	if err != nil || begun {
		return p.WrapError("look for "+logMeta+" in", err)
	}
	return p.delete(ctx, path.Join(p.dataFolder(), logLock))
}

// truncationLock is the file by which BR keeps two truncations of a log apart.
const truncationLock = "truncating.lock"

// RemoveStaleLock removes the lock of a truncation that an earlier pod of the same LogBackup was killed
// in: BR removes its own only when it ends by itself, and refuses every later truncation. Only one
// such pod is there at a time. A lock of others stays.
func (p *Place) RemoveStaleLock(ctx context.Context, pod string) error {
	key := path.Join(p.dataFolder(), truncationLock)
	text, err := p.Blobs.ReadAll(ctx, key)
	switch {
	case codeOf(err) == gcerrors.NotFound:
		return nil
	case err != nil:
		return p.WrapError("read "+key+" in", err)
	}
	var lock struct {
		Host string `json:"locker_host"`
	}
	if json.Unmarshal(text, &lock) != nil || seriesOf(lock.Host) == "" || seriesOf(lock.Host) != seriesOf(pod) {
		return nil // BR says whose it is
	}
	return p.delete(ctx, key)
}

// seriesOf is what the names of the pods of a LogBackup's Jobs have in common: all but the number of the
// Job and the pod's own suffix.
func seriesOf(pod string) string {
	for range 2 {
		pod = pod[:max(strings.LastIndexByte(pod, '-'), 0)]
	}
	return pod
}

// WithFolder is another folder of the same storage.
func (p *Place) WithFolder(folder string) *Place {
	out := *p
	out.Folder, out.Data = folder, ""
	return &out
}

// WithData is the same folder with the files of the tool where its marker says.
func (p *Place) WithData(m *Marker) *Place {
	out := *p
	out.Data = m.Data
	return &out
}

// CheckIsLog refuses a folder that has no log, or another LogBackup's if the UID is known.
func (p *Place) CheckIsLog(ctx context.Context, uid string) error {
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return err
	case m == nil || !m.Log:
		return failure.New(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has no log: is it that of a LogBackup?", p.Folder, p.Name())
	case uid != "" && m.UID != uid:
		return failure.New(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has the log of the LogBackup with UID %s, not %s", p.Folder, p.Name(), m.UID, uid)
	}
	return nil
}

// ReadComplete reads the marker of a backup that is complete.
func (p *Place) ReadComplete(ctx context.Context, uid string) (*Marker, error) {
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, failure.New(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has no %s: is it that of a backup?", p.Folder, p.Name(), MarkerFile)
	case m.Log:
		return nil, failure.New(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has a log, which is restored after a backup: name its folder by spec.from.logFolder, and that of the backup by spec.from.folder", p.Folder, p.Name())
	case !m.Complete:
		return nil, failure.New(v1alpha1.ReasonBackupUnreadable, "the backup in folder %s of %s is not complete", p.Folder, p.Name())
	case uid != "" && m.UID != uid:
		return nil, failure.New(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has the backup with UID %s, not %s", p.Folder, p.Name(), m.UID, uid)
	}
	return m, nil
}

// ForEachDataFile calls do with every file of the tool.
func (p *Place) ForEachDataFile(ctx context.Context, do func(*blob.ListObject) error) error {
	return p.forEachFile(ctx, p.dataFolder(), do)
}

// ReadDataFile reads a file of the tool.
func (p *Place) ReadDataFile(ctx context.Context, name string) ([]byte, error) {
	key := path.Join(p.dataFolder(), name)
	text, err := p.Blobs.ReadAll(ctx, key)
	return text, p.WrapError("read "+key+" in", err)
}

// forEachFile calls do with every file below a folder.
func (p *Place) forEachFile(ctx context.Context, folder string, do func(*blob.ListObject) error) error {
	files := p.Blobs.List(&blob.ListOptions{Prefix: folder + "/"})
	for {
		file, err := files.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.WrapError("list files in", err)
		}
		if err := do(file); err != nil {
			return err
		}
	}
}

// sumSizes adds up the files of the tool.
func (p *Place) sumSizes(ctx context.Context) (int64, error) {
	sum := int64(0)
	err := p.ForEachDataFile(ctx, func(file *blob.ListObject) error {
		sum += file.Size
		return nil
	})
	return sum, err
}

// Remove deletes the folder if its marker has the UID, and nothing if not. The marker goes
// last, so that a deletion that was interrupted goes on. It says whether it was there.
func (p *Place) Remove(ctx context.Context, uid string) (bool, error) {
	m, err := p.Marker(ctx)
	if err != nil || m == nil || m.UID != uid {
		return false, err
	}
	return true, p.removeAll(ctx)
}

// RemoveAttempt deletes what one run of a Backup has written, and nothing of another one:
// that may have begun, or be complete, when the first is cut off and fails at last.
func (p *Place) RemoveAttempt(ctx context.Context, of Marker) error {
	m, err := p.Marker(ctx)
	switch {
	case err != nil:
		return err
	case m != nil && m.UID == of.UID && m.Attempt == of.Attempt:
		if m.Complete {
			return nil
		}
		return p.removeAll(ctx)
	case of.Data == "":
		return nil
	}
	own := path.Join(p.Folder, of.Data)
	if err := p.removeFiles(ctx, own); err != nil {
		return err
	}
	return p.removeFolders(own)
}

// removeAll deletes the folder, its marker last.
func (p *Place) removeAll(ctx context.Context) error {
	if err := p.removeFiles(ctx, p.Folder); err != nil {
		return err
	}
	if err := p.delete(ctx, p.markerKey()); err != nil {
		return err
	}
	return p.removeFolders(p.Folder)
}

// removeFiles deletes the files below a folder, but the marker.
func (p *Place) removeFiles(ctx context.Context, folder string) error {
	marker := p.markerKey()
	return p.forEachFile(ctx, folder, func(file *blob.ListObject) error {
		if file.IsDir || file.Key == marker {
			return nil
		}
		return p.delete(ctx, file.Key)
	})
}

func (p *Place) delete(ctx context.Context, key string) error {
	if err := p.Blobs.Delete(ctx, key); err != nil && codeOf(err) != gcerrors.NotFound {
		return p.WrapError("delete "+key+" in", err)
	}
	return nil
}

// removeFolders removes a folder and those in it, which a volume has and a bucket does not know.
// All are empty.
func (p *Place) removeFolders(folder string) error {
	if p.Volume == "" {
		return nil
	}
	var found []string
	err := filepath.WalkDir(filepath.Join(p.Volume, folder), func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found = append(found, at)
		}
		return err
	})
	for _, at := range slices.Backward(found) {
		if err == nil {
			err = os.Remove(at)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is none, or another run has removed it
	}
	return p.WrapError("remove a folder of", err)
}
