package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// connectAzblob opens a container of Azure, by a key or as the identity of the pod.
func (p *place) connectAzblob(ctx context.Context) (err error) {
	at := cmp.Or(p.Endpoint, "https://"+p.Account+".blob.core.windows.net") + "/" + p.Bucket
	var client *container.Client
	if p.Credentials == "" {
		identity, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return fail(v1alpha1.ReasonStorageRefused, "the pod has no identity of Azure's, and storage.azblob names no secret: set spec.serviceAccountName or storage.azblob.secret in another object")
		}
		if client, err = container.NewClient(at, identity, nil); err != nil {
			return p.told("open", err)
		}
	} else {
		of := "key " + AccountKey + " of " + p.CredentialsOf
		if p.secret, err = readKey(filepath.Join(p.Credentials, AccountKey), of); err != nil {
			return err
		}
		key, err := container.NewSharedKeyCredential(p.Account, p.secret)
		if err != nil {
			return fail(v1alpha1.ReasonMissingReference, "%s is no key of a storage account: it is to be in base64", of)
		}
		if client, err = container.NewClientWithSharedKeyCredential(at, key, nil); err != nil {
			return p.told("open", err)
		}
	}
	p.bucket, err = azureblob.OpenBucket(ctx, client, nil)
	return p.told("open", err)
}

// envAzblob is the key, if there is one.
func (p *place) envAzblob() []string {
	if p.secret == "" {
		return nil
	}
	return []string{"AZURE_STORAGE_KEY=" + p.secret}
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
