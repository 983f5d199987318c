package storage

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"path/filepath"
	"strconv"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// Place is a storage that was opened.
type Place struct {
	Storage
	// Blobs are the files, by their keys.
	Blobs *blob.Bucket
	// Data is where in the folder the files of the tool are, "data" if empty.
	Data string
	// access and Secret are the credentials; Secret is never printed.
	access, Secret string
	// azure is what the tools know Azure's credentials by.
	azure []string
	// role is where the tools get the keys of the pod's role, if an agent of the node gives it.
	role string
}

func (p *Place) connect(ctx context.Context) (err error) {
	if p.Volume != "" {
		p.Blobs, err = fileblob.OpenBucket(p.Volume, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
		return p.WrapError("open", err)
	}
	switch p.Provider {
	case ProviderGCS:
		return p.connectGCS(ctx)
	case ProviderAzblob:
		return p.connectAzblob(ctx)
	}
	return p.connectS3(ctx)
}

// dataFolder is the folder of the tool's files.
func (p *Place) dataFolder() string { return path.Join(p.Folder, cmp.Or(p.Data, DataFolder)) }

// URL is where the tool finds or puts its files.
func (p *Place) URL() string {
	if p.Volume != "" {
		return filepath.Join(p.Volume, p.dataFolder())
	}
	scheme, query := p.query()
	return (&url.URL{Scheme: scheme, Host: p.Bucket, Path: "/" + p.dataFolder(), RawQuery: query.Encode()}).String()
}

// query is how the tools are given a bucket: its scheme, and how it is reached.
func (p *Place) query() (scheme string, out url.Values) {
	switch p.Provider {
	case ProviderGCS:
		out = url.Values{}
		if p.Credentials != "" { // without a file they use the identity of the pod
			out.Set("credentials-file", filepath.Join(p.Credentials, CredentialsFile))
		}
		return "gcs", out
	case ProviderAzblob:
		return "azure", url.Values{"account-name": {p.Account}} // the key comes by env
	}
	out = url.Values{"region": {p.Region}, "force-path-style": {strconv.FormatBool(p.PathStyle)}}
	if p.Endpoint != "" {
		out.Set("endpoint", p.Endpoint)
		// Of any but Amazon the tools do not compare the region with what the server tells of
		// its bucket: many tell none, which is taken for us-east-1.
		out.Set("provider", "ceph")
	}
	return "s3", out
}

// Env is what the tool needs to reach the storage.
func (p *Place) Env() []string {
	switch {
	case p.Volume != "", p.Provider == ProviderGCS:
		return nil
	case p.Provider == ProviderAzblob:
		return p.azure
	}
	out := []string{"AWS_REGION=" + p.Region, "AWS_EC2_METADATA_DISABLED=true"}
	if p.Credentials != "" { // otherwise the tools find the identity as the program does
		out = append(out, "AWS_ACCESS_KEY_ID="+p.access, "AWS_SECRET_ACCESS_KEY="+p.Secret)
	}
	if p.role != "" {
		out = append(out, roleAgent+"="+p.role)
	}
	if p.CA != "" {
		// Go reads it in place of the system's file, whichever library asks.
		out = append(out, "SSL_CERT_FILE="+p.CA)
	}
	return out
}
