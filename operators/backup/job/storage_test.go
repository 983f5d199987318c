package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

func TestBR01HowBucketsAreReached(t *testing.T) {
	secret := &v1alpha1.LocalReference{Name: "keys"}
	for name, of := range map[string]struct {
		storage  v1alpha1.Storage
		location string
		want     storage.Storage
	}{
		"amazon by keys": {
			v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "copies", Prefix: "a/b", Secret: secret}}, "s3://copies/a/b/monday",
			storage.Storage{Provider: "s3", Bucket: "copies", Credentials: jobtemplate.KeysDir, CredentialsOf: "Secret keys"},
		},
		"amazon by a role": {
			v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "copies", Prefix: "a/b"}}, "s3://copies/a/b/monday",
			storage.Storage{Provider: "s3", Bucket: "copies"},
		},
		"google by a key": {
			v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: "copies", Prefix: "a/b", Secret: secret}}, "gcs://copies/a/b/monday",
			storage.Storage{Provider: "gcs", Bucket: "copies", Credentials: jobtemplate.KeysDir, CredentialsOf: "Secret keys"},
		},
		"google by identity": {
			v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: "copies", Prefix: "a/b"}}, "gcs://copies/a/b/monday",
			storage.Storage{Provider: "gcs", Bucket: "copies"},
		},
		"azure by a key": {
			v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: "shop", Container: "copies", Prefix: "a/b", Secret: *secret}}, "azure://copies/a/b/monday",
			storage.Storage{Provider: "azblob", Account: "shop", Bucket: "copies", Credentials: jobtemplate.KeysDir, CredentialsOf: "Secret keys"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := toRetained()
			b.Spec.Storage, b.Spec.ServiceAccountName = of.storage, "copier"
			p := MakePlan(b, Seen{Group: group(), Image: image, Now: clock()})
			require.NotNil(t, p.Start)
			assert.Equal(t, of.location, p.Status.Location)
			pod := p.Start.Spec.Template
			c := pod.Spec.Containers[0]
			command, err := runner.Parse(append([]string{c.Command[1]}, c.Args[:len(c.Args)-1]...))
			require.NoError(t, err)
			of.want.Folder, of.want.Region, of.want.PathStyle = "a/b/monday", "us-east-1", true
			assert.Equal(t, of.want, command.Storage)
			assert.Equal(t, "copier", pod.Spec.ServiceAccountName)
			assert.False(t, *pod.Spec.AutomountServiceAccountToken, "no token of Kubernetes")
			mounted := false
			for _, v := range pod.Spec.Volumes {
				mounted = mounted || v.Secret != nil && v.Secret.SecretName == "keys"
			}
			assert.Equal(t, of.want.Credentials != "", mounted)
		})
	}
}

// A backup in Azure could be made in any version, and its Restore failed at once.
func TestBR04TiDBLightningThatCannotReadFromAzureIsNamedBefore(t *testing.T) {
	begins := func(version, image string, change func(*v1alpha1.Restore)) Plan {
		g, r := group(), fromPVC()
		g.Spec.Version, r.Spec.Image = version, image
		r.Spec.From.Storage = &v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: "shop", Container: "copies", Secret: v1alpha1.LocalReference{Name: "keys"}}}
		change(r)
		return MakePlan(r, Seen{Group: g, Image: "backup-operator", Now: clock()})
	}
	same := func(*v1alpha1.Restore) {}
	for _, version := range []string{"v7.5.1", "v8.1.0"} {
		p := begins(version, "", same)
		assert.Nil(t, p.Start, version)
		assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
		assert.Contains(t, p.Outcome.Message, "TiDB Lightning of "+version+" cannot read from Azure")
		assert.NotNil(t, begins(version, "mirror/tidb-lightning:v8.5.7", same).Start, "another image may")
		assert.NotNil(t, begins(version, "", func(r *v1alpha1.Restore) { r.Spec.Type = v1alpha1.BackupPhysical }).Start, "BR can")
		assert.NotNil(t, begins(version, "", func(r *v1alpha1.Restore) { r.Spec.From = fromPVC().Spec.From }).Start)
	}
	for _, version := range []string{"v8.5.0", "v8.5.7", "nightly"} {
		assert.NotNil(t, begins(version, "", same).Start, version)
	}
}

// Before v7.5.0 (pingcap/tidb#47414) TiDB Lightning ends at tidb.session-vars, as at any item that it does not
// know (Config.LoadFromTOML of its pkg/lightning/config): placement policies and sequences had been made by then.
func TestBR04TiDBLightningThatTakesNoTimeZoneIsNamedBefore(t *testing.T) {
	begins := func(version string, change func(*v1alpha1.Restore)) Plan {
		g, r := group(), fromPVC()
		g.Spec.Version = version
		change(r)
		return MakePlan(r, Seen{Group: g, Image: "backup-operator", Now: clock()})
	}
	same := func(*v1alpha1.Restore) {}
	for _, version := range []string{"v7.1.0", "v7.1.5", "v7.4.0"} {
		p := begins(version, same)
		assert.Nil(t, p.Start, version)
		assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
		assert.Contains(t, p.Outcome.Message, "TiDB Lightning of "+version+" cannot read times in the time zone of a backup: name one of v7.5 or later in spec.image")
		assert.NotNil(t, begins(version, func(r *v1alpha1.Restore) { r.Spec.Image = "mirror/tidb-lightning:v8.5.7" }).Start, "another image may")
		assert.NotNil(t, begins(version, func(r *v1alpha1.Restore) { r.Spec.Type = v1alpha1.BackupPhysical }).Start, "BR can")
	}
	for _, version := range []string{"v7.5.0", "v8.5.7", "nightly"} {
		assert.NotNil(t, begins(version, same).Start, version)
	}
}
