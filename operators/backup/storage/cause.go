package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/cause"
)

// describeDoubt asks what may be wrong with credentials that were refused.
func (p *Place) describeDoubt() string {
	if p.Credentials == "" {
		return "may the role of the pod's ServiceAccount list, read, write and delete there?"
	}
	return "does " + p.CredentialsOf + " have the right keys, and may they list, read, write and delete there?"
}

// codeOf reports what kind of error a storage's client has. The library takes what Google refuses for
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

// cloudReason reports what kind of error Google's or Azure's client has; empty if that is not known.
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
func (p *Place) cloudCause(err error) string {
	switch {
	case cloudReason(err) == v1alpha1.ReasonBucketMissing:
		return "it does not exist"
	case p.Credentials == "":
		return "refused: may the identity of the pod's ServiceAccount list, read, write and delete there?"
	}
	return "refused: does " + p.CredentialsOf + " have the right key, and may it list, read, write and delete there?"
}

// server is the server of the storage in messages.
func (p *Place) server() string {
	switch p.Provider {
	case ProviderGCS:
		return "Google Cloud Storage"
	case ProviderAzblob:
		return cmp.Or(p.Endpoint, p.Account+".blob.core.windows.net")
	}
	return cmp.Or(p.Endpoint, "Amazon S3")
}

// Name is the storage in messages.
func (p *Place) Name() string {
	if p.Volume != "" {
		return "the volume"
	}
	if p.Provider == ProviderAzblob {
		return "container " + p.Bucket
	}
	return "bucket " + p.Bucket
}

// WrapError names the cause of an error of the storage; nil for none.
func (p *Place) WrapError(verb string, err error) error {
	if err == nil {
		return nil
	}
	var known *failure.Failure
	if errors.As(err, &known) {
		return err
	}
	reason, why := p.classifyError(err)
	return failure.New(reason, "%s %s: %s", verb, p.Name(), why)
}

// refusalCodes are codes of errors about keys and rights, of Amazon's servers and others'.
func refusalCodes() []string {
	return []string{"AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem", "InvalidToken", "ExpiredToken", "XAdminUserNotFound"}
}

// classifyError reports what kind of error it is, and what to do.
func (p *Place) classifyError(err error) (reason, why string) {
	var (
		api      smithy.APIError
		network  net.Error
		response *awshttp.ResponseError
	)
	unknown := failure.DescribeCertificateError(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return v1alpha1.ReasonStorageFull, "no space is left"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return v1alpha1.ReasonStorageRefused, err.Error() + ": let user and group 65532 write there"
	case errors.As(err, &api):
		code := api.ErrorCode()
		refused := errors.As(err, &response) && slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, response.HTTPStatusCode())
		switch {
		case code == "NoSuchBucket":
			return v1alpha1.ReasonBucketMissing, "it does not exist"
		case refused, slices.Contains(refusalCodes(), code):
			return v1alpha1.ReasonStorageRefused, code + ": " + p.describeDoubt()
		default:
			return v1alpha1.ReasonRunFailed, code + ": " + api.ErrorMessage()
		}
	case p.Provider != "" && p.Provider != ProviderS3 && cloudReason(err) != "":
		return cloudReason(err), p.cloudCause(err)
	case unknown != "":
		return v1alpha1.ReasonCertificateInvalid, p.describeUnverified(unknown)
	case p.Volume == "" && errors.As(err, &network): // errors of files have its methods too
		return v1alpha1.ReasonStorageUnreachable, p.server() + " does not answer: " + cause.Describe(err)
	}
	return v1alpha1.ReasonRunFailed, err.Error()
}

// describeUnverified says that the endpoint's certificate is not one that is trusted, and what to do.
func (p *Place) describeUnverified(why string) string {
	if p.CA != "" {
		return fmt.Sprintf("the certificate of %s cannot be verified by %s, which storage.s3.caSecret names: %s", p.Endpoint, p.CAOf, why)
	}
	return fmt.Sprintf("the certificate of %s cannot be verified: %s: if your own CA has signed it, recreate this with storage.s3.caSecret", cmp.Or(p.Endpoint, "Amazon S3"), why)
}
