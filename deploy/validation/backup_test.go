package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestBR04InvalidBackupsAreRefused(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	for words, of := range map[string]struct {
		kind string
		change
	}{
		"storage needs exactly one of s3, gcs, azblob and pvc": {v1alpha1.KindBackup, change{"spec.storage", "{}"}},
		"exclude each other":                                      {v1alpha1.KindBackup, change{"spec.databases", "[a]"}},
		"a user other than root needs passwordSecret":             {v1alpha1.KindBackup, change{"spec.user", "me"}},
		"spec.storage.pvc.path":                                   {v1alpha1.KindBackup, change{"spec.storage.pvc.path", "a/../b"}},
		"type Physical needs storage.s3, gcs or azblob":           {v1alpha1.KindBackup, change{"spec.type", "Physical"}},
		"type Physical needs a secret in storage":                 {v1alpha1.KindBackup, change{"spec", "{tidbGroup: {name: a}, type: Physical, storage: {gcs: {bucket: abc}}}"}},
		"caSecret goes with secret":                               {v1alpha1.KindBackup, change{"spec", "{tidbGroup: {name: a}, storage: {s3: {bucket: abc, endpoint: 'https://s3', caSecret: {name: a, key: b}}}}"}},
		"spec.storage.azblob.secret":                              {v1alpha1.KindBackup, change{"spec.storage", "{azblob: {account: abc, container: abc}}"}},
		"spec.storage.gcs.bucket":                                 {v1alpha1.KindBackup, change{"spec.storage", "{gcs: {bucket: A}}"}},
		"a LogBackup needs a secret":                              {v1alpha1.KindLogBackup, change{"spec.storage", "{gcs: {bucket: abc}}"}},
		"gcs or azblob with a secret, and without caSecret":       {v1alpha1.KindRestore, change{"spec", "{tidbGroup: {name: a}, type: Physical, from: {folder: a, storage: {gcs: {bucket: abc}}}}"}},
		"metadata.name must be at most 48 characters":             {v1alpha1.KindBackup, change{"metadata.name", "a234567890123456789012345678901234567890123456789"}},
		"from needs exactly one of backup, logBackup and storage": {v1alpha1.KindRestore, change{"spec.from", "{}"}},
		"pointInTime goes with from.logBackup":                    {v1alpha1.KindRestore, change{"spec.pointInTime", `"2026-01-02T03:04:05Z"`}},
		"from.logFolder goes with from.storage":                   {v1alpha1.KindRestore, change{"spec.from.logFolder", "x"}},
		"from.logFolder goes with type: Physical":                 {v1alpha1.KindRestore, change{"spec.from", "{storage: {s3: {bucket: abc, secret: {name: a}}}, folder: a, logFolder: b}"}},
		"filters, physical and logical do not go with a log":      {v1alpha1.KindRestore, change{"spec", "{tidbGroup: {name: a}, from: {logBackup: {name: a}}, logical: {threads: 8}}"}},
		"logical goes with type: Logical":                         {v1alpha1.KindBackup, change{"spec", "{tidbGroup: {name: a}, type: Physical, logical: {threads: 8}, storage: {s3: {bucket: abc, secret: {name: a}}}}"}},
		"spec.logical.threads":                                    {v1alpha1.KindBackup, change{"spec.logical", "{threads: 0}"}},
		"a LogBackup needs storage.s3":                            {v1alpha1.KindLogBackup, change{"spec.storage", "{pvc: {claimName: a}}"}},
		"truncateBefore and truncateWith exclude":                 {v1alpha1.KindLogBackup, change{"spec", `{tidbGroup: {name: a}, storage: {s3: {bucket: abc, secret: {name: a}}}, truncateBefore: "2026-01-02T03:04:05Z", truncateWith: {name: a}}`}},
		"checkEvery must be between 1m and 24h":                   {v1alpha1.KindLogBackup, change{"spec.checkEvery", "30s"}},
		"spec.state":                                              {v1alpha1.KindLogBackup, change{"spec.state", "Started"}},
		"from.folder goes with from.storage":                      {v1alpha1.KindRestore, change{"spec.from.folder", "x"}},
		"metadata.name must be at most 32 characters":             {v1alpha1.KindBackupSchedule, change{"metadata.name", "a23456789012345678901234567890123"}},
		"spec.template.storage: Invalid value":                    {v1alpha1.KindBackupSchedule, change{"spec.template.storage", "{}"}},
		"spec.maxAge":                                             {v1alpha1.KindBackupSchedule, change{"spec.maxAge", "30d"}},
		"should be greater than or equal to 1":                    {v1alpha1.KindBackupSchedule, change{"spec.maxBackups", "0"}},
	} {
		changes := []change{of.change}
		if words == "exclude each other" {
			changes = append(changes, change{"spec.tables", "[a.b]"})
		}
		require.ErrorContains(t, c.Create(t.Context(), apply(t, valid(t, of.kind, namespace), changes...)), words)
	}
}

// TiKV has not the identity of a run's pod.
func TestBR01BackupsThatTiKVWritesNeedKeys(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	for kind, spec := range map[string]string{
		v1alpha1.KindBackup:         "{tidbGroup: {name: a}, type: Physical, storage: {s3: {bucket: abc}}}",
		v1alpha1.KindBackupSchedule: "{schedule: '0 2 * * *', template: {tidbGroup: {name: a}, type: Physical, storage: {s3: {bucket: abc}}}}",
		v1alpha1.KindLogBackup:      "{tidbGroup: {name: a}, storage: {s3: {bucket: abc}}}",
		v1alpha1.KindRestore:        "{tidbGroup: {name: a}, type: Physical, from: {folder: a, storage: {s3: {bucket: abc}}}}",
	} {
		assert.ErrorContains(t, c.Create(t.Context(), apply(t, valid(t, kind, namespace), change{"spec", spec})), "every TiKV", kind)
	}
	logical := change{"spec", "{tidbGroup: {name: a}, serviceAccountName: copier, storage: {s3: {bucket: abc}}}"}
	assert.NoError(t, c.Create(t.Context(), apply(t, valid(t, v1alpha1.KindBackup, namespace), logical)))
}

func TestBR04OnlySomeFieldsOfABackupMayChange(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	for _, kind := range []string{v1alpha1.KindBackup, v1alpha1.KindLogBackup, v1alpha1.KindRestore} {
		o := valid(t, kind, namespace)
		require.NoError(t, c.Create(t.Context(), o))
		refused := []change{{"spec.tidbGroup.name", "other"}, {"spec.filters", "[a.b]"}}
		taken := []change{{"spec.image", "a:b"}, {"spec.passwordSecret", "{name: a, key: b}"}}
		switch kind {
		case v1alpha1.KindLogBackup:
			refused = []change{{"spec.tidbGroup.name", "other"}, {"spec.storage.s3.bucket", "other"}}
			taken = []change{{"spec.image", "a:b"}, {"spec.state", "Stopped"}, {"spec.truncateBefore", `"2026-01-02T03:04:05Z"`}}
		case v1alpha1.KindBackup:
			refused = append(refused, change{"spec.storage.pvc.claimName", "other"})
			taken = append(taken, change{"spec.cleanupPolicy", "Delete"})
		default:
			refused = append(refused, change{"spec.from.backup.name", "other"})
			taken = append(taken, change{"spec.allowNonEmpty", "true"})
		}
		for _, edit := range refused {
			assert.ErrorContains(t, c.Update(t.Context(), apply(t, o.DeepCopy(), edit)), "cannot be changed", edit.path)
		}
		for _, edit := range taken {
			assert.NoError(t, c.Update(t.Context(), apply(t, o, edit)), edit.path)
		}
	}
}
