package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// Keys of Secrets with credentials of Google and of Azure.
const (
	CredentialsFile = "credentials.json"
	AccountKey      = "account_key"
	ClientID        = "client_id"
	TenantID        = "tenant_id"
	ClientSecret    = "client_secret" //nolint:gosec // the name of a key
)

// scopeGCS is what the run may do in Google's name, as far as its account may.
const scopeGCS = "https://www.googleapis.com/auth/devstorage.read_write"

// connectGCS opens a bucket of Google, by a key or as the identity of the pod.
func (p *Place) connectGCS(ctx context.Context) error {
	source, err := p.tokensGCS(ctx)
	if err != nil {
		return err
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), source)
	if err != nil {
		return p.WrapError("open", err)
	}
	p.Blobs, err = gcsblob.OpenBucket(ctx, client, p.Bucket, nil)
	return p.WrapError("open", err)
}

func (p *Place) tokensGCS(ctx context.Context) (gcp.TokenSource, error) {
	if p.Credentials == "" {
		found, err := google.FindDefaultCredentials(ctx, scopeGCS)
		if err != nil {
			return nil, failure.New(v1alpha1.ReasonStorageRefused, "the pod has no Google identity, and storage.gcs names no secret: set spec.serviceAccountName or storage.gcs.secret in another object")
		}
		return found.TokenSource, nil
	}
	of := "key " + CredentialsFile + " of " + p.CredentialsOf
	text, err := failure.ReadKey(filepath.Join(p.Credentials, CredentialsFile), of)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(text), &kind) != nil || kind.Type != string(google.ServiceAccount) {
		return nil, failure.New(v1alpha1.ReasonMissingReference, "%s is not the JSON of a service account: its field type must be service_account", of)
	}
	found, err := google.CredentialsFromJSONWithType(ctx, []byte(text), google.ServiceAccount, scopeGCS)
	if err != nil {
		return nil, failure.New(v1alpha1.ReasonMissingReference, "%s does not hold the JSON of a service account", of)
	}
	return found.TokenSource, nil
}

// connectAzblob opens a container of Azure, by the key of its account or as an application.
func (p *Place) connectAzblob(ctx context.Context) error {
	connect := p.byKey
	if _, err := os.Stat(filepath.Join(p.Credentials, ClientSecret)); err == nil {
		connect = p.asApplication
	}
	client, err := connect(cmp.Or(p.Endpoint, "https://"+p.Account+".blob.core.windows.net") + "/" + p.Bucket)
	if err != nil {
		return p.WrapError("open", err)
	}
	p.Blobs, err = azureblob.OpenBucket(ctx, client, nil)
	return p.WrapError("open", err)
}

// byKey connects with the key of the account, which the tools take from the environment.
func (p *Place) byKey(at string) (*container.Client, error) {
	of := "key " + AccountKey + " of " + p.CredentialsOf
	var err error
	if p.Secret, err = failure.ReadKey(filepath.Join(p.Credentials, AccountKey), of); err != nil {
		return nil, err
	}
	key, err := container.NewSharedKeyCredential(p.Account, p.Secret)
	if err != nil {
		return nil, failure.New(v1alpha1.ReasonMissingReference, "%s is not the key of a storage account: it must be base64", of)
	}
	p.azure = []string{"AZURE_STORAGE_KEY=" + p.Secret}
	return container.NewClientWithSharedKeyCredential(at, key, nil)
}

// asApplication connects as an application of Entra ID, as the tools do. BR gives stores a key only.
func (p *Place) asApplication(at string) (*container.Client, error) {
	if p.Stores {
		return nil, failure.New(v1alpha1.ReasonMissingReference, "key %s of %s is there, and every TiKV needs the key of the account: name a Secret with the key %s alone, in another object", ClientSecret, p.CredentialsOf, AccountKey)
	}
	var values []string
	for _, key := range []string{ClientID, TenantID, ClientSecret} {
		value, err := failure.ReadKey(filepath.Join(p.Credentials, key), "key "+key+" of "+p.CredentialsOf)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	p.Secret = values[2]
	p.azure = []string{"AZURE_CLIENT_ID=" + values[0], "AZURE_TENANT_ID=" + values[1], "AZURE_CLIENT_SECRET=" + p.Secret}
	application, err := azidentity.NewClientSecretCredential(values[1], values[0], p.Secret, nil)
	if err != nil {
		return nil, failure.New(v1alpha1.ReasonMissingReference, "%s names no application of Entra ID: %w", p.CredentialsOf, err)
	}
	return container.NewClient(at, application, nil)
}
