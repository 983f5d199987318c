package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcerrors"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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
func (p *place) connectGCS(ctx context.Context) error {
	source, err := p.tokensGCS(ctx)
	if err != nil {
		return err
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), source)
	if err != nil {
		return p.told("open", err)
	}
	p.bucket, err = gcsblob.OpenBucket(ctx, client, p.Bucket, nil)
	return p.told("open", err)
}

func (p *place) tokensGCS(ctx context.Context) (gcp.TokenSource, error) {
	if p.Credentials == "" {
		found, err := google.FindDefaultCredentials(ctx, scopeGCS)
		if err != nil {
			return nil, fail(v1alpha1.ReasonStorageRefused, "the pod has no identity of Google's, and storage.gcs names no secret: set spec.serviceAccountName or storage.gcs.secret in another object")
		}
		return found.TokenSource, nil
	}
	of := "key " + CredentialsFile + " of " + p.CredentialsOf
	text, err := readKey(filepath.Join(p.Credentials, CredentialsFile), of)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(text), &kind) != nil || kind.Type != string(google.ServiceAccount) {
		return nil, fail(v1alpha1.ReasonMissingReference, "%s has not the JSON of a service account: its field type is to be service_account", of)
	}
	found, err := google.CredentialsFromJSONWithType(ctx, []byte(text), google.ServiceAccount, scopeGCS)
	if err != nil {
		return nil, fail(v1alpha1.ReasonMissingReference, "%s has not the JSON of a service account", of)
	}
	return found.TokenSource, nil
}

// connectAzblob opens a container of Azure, by the key of its account or as an application.
func (p *place) connectAzblob(ctx context.Context) error {
	connect := p.byKey
	if _, err := os.Stat(filepath.Join(p.Credentials, ClientSecret)); err == nil {
		connect = p.asApplication
	}
	client, err := connect(cmp.Or(p.Endpoint, "https://"+p.Account+".blob.core.windows.net") + "/" + p.Bucket)
	if err != nil {
		return p.told("open", err)
	}
	p.bucket, err = azureblob.OpenBucket(ctx, client, nil)
	return p.told("open", err)
}

// byKey connects with the key of the account, which the tools take from the environment.
func (p *place) byKey(at string) (*container.Client, error) {
	of := "key " + AccountKey + " of " + p.CredentialsOf
	var err error
	if p.secret, err = readKey(filepath.Join(p.Credentials, AccountKey), of); err != nil {
		return nil, err
	}
	key, err := container.NewSharedKeyCredential(p.Account, p.secret)
	if err != nil {
		return nil, fail(v1alpha1.ReasonMissingReference, "%s is no key of a storage account: it is to be in base64", of)
	}
	p.azure = []string{"AZURE_STORAGE_KEY=" + p.secret}
	return container.NewClientWithSharedKeyCredential(at, key, nil)
}

// asApplication connects as an application of Entra ID, as the tools do. BR gives stores a key only.
func (p *place) asApplication(at string) (*container.Client, error) {
	if p.Stores {
		return nil, fail(v1alpha1.ReasonMissingReference, "key %s of %s is there, and every TiKV needs the key of the account: name a Secret with the key %s alone, in another object", ClientSecret, p.CredentialsOf, AccountKey)
	}
	var values []string
	for _, key := range []string{ClientID, TenantID, ClientSecret} {
		value, err := readKey(filepath.Join(p.Credentials, key), "key "+key+" of "+p.CredentialsOf)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	p.secret = values[2]
	p.azure = []string{"AZURE_CLIENT_ID=" + values[0], "AZURE_TENANT_ID=" + values[1], "AZURE_CLIENT_SECRET=" + p.secret}
	application, err := azidentity.NewClientSecretCredential(values[1], values[0], p.secret, nil)
	if err != nil {
		return nil, fail(v1alpha1.ReasonMissingReference, "%s names no application of Entra ID: %w", p.CredentialsOf, err)
	}
	return container.NewClient(at, application, nil)
}

// codeOf tells what kind of error a storage's client has. The library takes what Google refuses for
// missing, and knows few of Azure's refusals.
func codeOf(err error) gcerrors.ErrorCode {
	var (
		byGoogle *googleapi.Error
		byAzure  *azcore.ResponseError
		status   int
	)
	if errors.As(err, &byGoogle) {
		status = byGoogle.Code
	}
	if errors.As(err, &byAzure) {
		status = byAzure.StatusCode
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return gcerrors.PermissionDenied
	}
	return gcerrors.Code(err)
}

// cloudReason tells what kind of error Google's or Azure's client has; empty if that is not known.
func cloudReason(err error) string {
	var token *oauth2.RetrieveError
	var identity *azidentity.AuthenticationFailedError
	switch code := codeOf(err); {
	case code == gcerrors.NotFound:
		return v1alpha1.ReasonBucketMissing
	case code == gcerrors.PermissionDenied, errors.As(err, &token), errors.As(err, &identity):
		return v1alpha1.ReasonStorageRefused
	}
	return ""
}

// cloudCause says what such an error means.
func (p *place) cloudCause(err error) string {
	switch {
	case cloudReason(err) == v1alpha1.ReasonBucketMissing:
		return "it does not exist"
	case p.Credentials == "":
		return "refused: may the identity of the pod's ServiceAccount list, read, write and delete there?"
	}
	return "refused: does " + p.CredentialsOf + " have the right key, and may it list, read, write and delete there?"
}

// server is the server of the storage in messages.
func (p *place) server() string {
	switch p.Provider {
	case ProviderGCS:
		return "Google Cloud Storage"
	case ProviderAzblob:
		return cmp.Or(p.Endpoint, p.Account+".blob.core.windows.net")
	}
	return cmp.Or(p.Endpoint, "Amazon S3")
}
