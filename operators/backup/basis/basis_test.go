package basis

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func TestBR01ALogGoesOnFromABackupOfTheSameBucket(t *testing.T) {
	gcs := func(bucket, prefix, secret string) v1alpha1.Storage {
		return v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: bucket, Prefix: prefix, Secret: &v1alpha1.LocalReference{Name: secret}}}
	}
	for _, c := range []struct {
		one, other v1alpha1.Storage
		same       bool
	}{
		{gcs("a", "x", "k"), gcs("a", "y", "k"), true},
		{gcs("a", "x", "k"), gcs("b", "x", "k"), false},
		{gcs("a", "x", "k"), gcs("a", "x", "other"), false},
		{v1alpha1.Storage{PVC: &v1alpha1.PVCStorage{ClaimName: "a"}}, v1alpha1.Storage{PVC: &v1alpha1.PVCStorage{ClaimName: "a"}}, false},
		{v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: "a", Container: "c"}}, v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: "b", Container: "c"}}, false},
	} {
		why := DescribeMismatch(v1alpha1.BackupTemplate{Type: v1alpha1.BackupPhysical, Storage: c.one}, Log{Spec: v1alpha1.LogBackupSpec{Storage: c.other}})
		assert.Equal(t, c.same, why == "", why)
	}
}
