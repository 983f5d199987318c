package schedule

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestBR02WhatARestoreReadsIsKnownByItsNameOrItsFolder(t *testing.T) {
	bucket := func(endpoint string) v1alpha1.Storage {
		return v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "backups", Prefix: "prod", Endpoint: endpoint}}
	}
	in := func(name, endpoint string) *v1alpha1.Backup {
		b := backup(name, v1alpha1.RunComplete, 0)
		b.Spec.Storage = bucket(endpoint)
		return b
	}
	backups := []*v1alpha1.Backup{in("a", "http://s3:7070"), in("b", ""), in("c", ""), in("d", "")}
	named, chosen, ended, byFolder := v1alpha1.Restore{}, v1alpha1.Restore{}, v1alpha1.Restore{}, v1alpha1.Restore{}
	named.Spec.From.Backup = &v1alpha1.LocalReference{Name: "b"}
	chosen.Spec.From.LogBackup, chosen.Status.Backup = &v1alpha1.LocalReference{Name: "the-log"}, "c"
	ended.Spec.From.Backup, ended.Status.State = &v1alpha1.LocalReference{Name: "d"}, v1alpha1.RunComplete
	there := bucket("https://other.example")
	byFolder.Spec.From = v1alpha1.RestoreSource{Storage: &there, Folder: "a", LogFolder: "the-log"}
	read := FindRead([]v1alpha1.Restore{named, chosen, ended, byFolder}, backups)
	assert.Equal(t, []bool{true, true, true, false}, []bool{read["a"], read["b"], read["c"], read["d"]})

	l := &v1alpha1.LogBackup{ObjectMeta: metav1.ObjectMeta{Name: "the-log"}}
	l.Spec.Storage = bucket("")
	for want, all := range map[bool][]v1alpha1.Restore{true: {chosen, byFolder}, false: {named, ended}} {
		for i := range all {
			assert.Equal(t, want, ReadsLog(&all[i], l))
		}
	}
	byFolder.Status.State = v1alpha1.RunFailed
	assert.False(t, ReadsLog(&byFolder, l))
}
