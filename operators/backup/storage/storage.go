package storage

import (
	"context"
	"errors"

	"gocloud.dev/blob"
	_ "golang.org/x/crypto/x509roots/fallback" // the operators' images have no certificate authorities
)

// Providers of buckets.
const (
	ProviderS3     = "s3"
	ProviderGCS    = "gcs"
	ProviderAzblob = "azblob"
)

// Storage is where the files are.
type Storage struct {
	// Volume is the folder that it is mounted at; empty for a bucket.
	Volume string
	// Provider of the bucket, and Account that it is in, if it is Azure's.
	Provider, Account string
	// Bucket, and Endpoint, Region and PathStyle of S3. Of others than S3, Endpoint is that of
	// a test.
	Bucket, Endpoint, Region string
	PathStyle                bool
	// Credentials is the folder with the keys of the Secret, CredentialsOf its name. Google needs
	// none: the pod may have an identity.
	Credentials, CredentialsOf string
	// CA is a file with the certificate of the authority that has signed the endpoint's,
	// CAOf what it is made from; both empty for those that are known anyway.
	CA, CAOf string
	// Folder of the backup in it.
	Folder string
	// Stores says that every TiKV reaches it too.
	Stores bool
}

// DataFolder has the files of the tool, in the folder of a backup: those of each run of it in a
// folder of their own.
const DataFolder = "data"

// Open opens the storage, and says what is wrong with it if that can be known by a look.
func (s Storage) Open(ctx context.Context) (*Place, error) {
	p := &Place{Storage: s}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	if _, _, err := p.Blobs.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: s.Folder + "/"}); err != nil {
		return nil, errors.Join(p.WrapError("look into", err), p.Blobs.Close())
	}
	return p, nil
}
