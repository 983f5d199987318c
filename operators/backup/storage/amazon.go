package storage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob/s3blob"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/cause"
)

// Keys of a Secret with credentials of S3.
const (
	AccessKey = "access_key"
	SecretKey = "secret_key" //nolint:gosec // the name of a key
)

// Variables that Amazon EKS sets in pods which have a role: by a token of their ServiceAccount, or by
// an agent of their node.
const (
	roleToken = "AWS_WEB_IDENTITY_TOKEN_FILE" //nolint:gosec // the name of a variable
	roleAgent = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
)

// connectS3 opens a bucket of S3, by keys or by the role of the pod.
func (p *Place) connectS3(ctx context.Context) error {
	known, err := p.authorityClient()
	if err != nil {
		return err
	}
	c := aws.Config{Region: p.Region, HTTPClient: known}
	if p.Credentials == "" {
		c, err = p.connectWithRole(ctx)
	} else {
		c.Credentials, err = p.readKeys()
	}
	if err != nil {
		return err
	}
	// Servers that are not Amazon's know no other checksums.
	c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	client := s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = p.PathStyle
		if p.Endpoint != "" {
			o.BaseEndpoint = &p.Endpoint
		}
	})
	p.Blobs, err = s3blob.OpenBucket(ctx, client, p.Bucket, nil)
	return p.WrapError("open", err)
}

// readKeys are those of the Secret.
func (p *Place) readKeys() (_ aws.CredentialsProvider, err error) {
	if p.access, err = failure.ReadKey(filepath.Join(p.Credentials, AccessKey), "key "+AccessKey+" of "+p.CredentialsOf); err != nil {
		return nil, err
	}
	if p.Secret, err = failure.ReadKey(filepath.Join(p.Credentials, SecretKey), "key "+SecretKey+" of "+p.CredentialsOf); err != nil {
		return nil, err
	}
	return credentials.NewStaticCredentialsProvider(p.access, p.Secret, ""), nil
}

// connectWithRole connects with the role that the pod has. That of its node is not the pod's.
func (p *Place) connectWithRole(ctx context.Context) (aws.Config, error) {
	if os.Getenv(roleToken) == "" && os.Getenv(roleAgent) == "" {
		return aws.Config{}, failure.New(v1alpha1.ReasonStorageRefused, "the pod has no AWS role, and storage.s3 names no secret: set spec.serviceAccountName to a ServiceAccount with an AWS role, or storage.s3.secret in another object")
	}
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(p.Region), config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	if err == nil {
		// The storage is asked later: what goes wrong here is not its fault.
		_, err = c.Credentials.Retrieve(ctx)
	}
	if err == nil && hasAgent() {
		p.role, err = relayRole(ctx, c.Credentials)
	}
	return c, withoutRole(err)
}

// withoutRole says why the pod does not get its role; nil for no error.
func withoutRole(err error) error {
	var (
		api     smithy.APIError
		network net.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		return failure.New(v1alpha1.ReasonStorageRefused, "the pod does not get the role of its ServiceAccount: %s: %s: does the role's trust policy name the ServiceAccount?", api.ErrorCode(), api.ErrorMessage())
	case errors.As(err, &network):
		return failure.New(v1alpha1.ReasonStorageUnreachable, "the service that gives the pod the role of its ServiceAccount does not answer: %s", cause.Describe(err))
	}
	return failure.New(v1alpha1.ReasonStorageRefused, "the pod does not get the role of its ServiceAccount: %w", err)
}

// authorityClient is a client of HTTP that knows the endpoint by the authority of the Secret.
func (s Storage) authorityClient() (aws.HTTPClient, error) {
	out := awshttp.NewBuildableClient()
	if s.CA == "" {
		return out, nil
	}
	text, err := failure.ReadKey(s.CA, s.CAOf)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, failure.New(v1alpha1.ReasonCertificateInvalid, "%s, which storage.s3.caSecret names, is not a PEM certificate", s.CAOf)
	}
	return out.WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}), nil
}
