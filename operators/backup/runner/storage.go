package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/cause"
)

// DataFolder has the files of the tool, in the folder of a backup.
const DataFolder = "data"

// place is a storage that was opened.
type place struct {
	Storage
	bucket *blob.Bucket
	// access and secret are the credentials; secret is told to nobody.
	access, secret string
	// azure is what the tools know Azure's credentials by.
	azure []string
}

// open opens the storage, and says what is wrong with it if that can be known by a look.
func (s Storage) open(ctx context.Context) (*place, error) {
	p := &place{Storage: s}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	if _, _, err := p.bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: s.Folder + "/"}); err != nil {
		return nil, errors.Join(p.told("look into", err), p.bucket.Close())
	}
	return p, nil
}

func (p *place) connect(ctx context.Context) (err error) {
	if p.Volume != "" {
		p.bucket, err = fileblob.OpenBucket(p.Volume, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
		return p.told("open", err)
	}
	switch p.Provider {
	case ProviderGCS:
		return p.connectGCS(ctx)
	case ProviderAzblob:
		return p.connectAzblob(ctx)
	}
	return p.connectS3(ctx)
}

// readKey reads a key of a Secret that is mounted as a file. It is of what messages call it.
func readKey(file, of string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // of the Secret that is mounted
	switch value := strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail(v1alpha1.ReasonMissingReference, "%s is not there", of)
	case err != nil:
		return "", fmt.Errorf("read %s: %w", of, err)
	case value == "":
		return "", fail(v1alpha1.ReasonMissingReference, "%s is empty", of)
	default:
		return value, nil
	}
}

// url is where the tool finds or puts its files.
func (p *place) url() string {
	if p.Volume != "" {
		return filepath.Join(p.Volume, p.Folder, DataFolder)
	}
	scheme, query := p.query()
	return (&url.URL{Scheme: scheme, Host: p.Bucket, Path: "/" + path.Join(p.Folder, DataFolder), RawQuery: query.Encode()}).String()
}

// query is how the tools are told of a bucket: its scheme, and how it is reached.
func (p *place) query() (scheme string, out url.Values) {
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
	}
	return "s3", out
}

// env is what the tool needs to reach the storage.
func (p *place) env() []string {
	switch {
	case p.Volume != "", p.Provider == ProviderGCS:
		return nil
	case p.Provider == ProviderAzblob:
		return p.azure
	}
	out := []string{"AWS_REGION=" + p.Region, "AWS_EC2_METADATA_DISABLED=true"}
	if p.Credentials != "" { // otherwise the tools find the identity as the program does
		out = append(out, "AWS_ACCESS_KEY_ID="+p.access, "AWS_SECRET_ACCESS_KEY="+p.secret)
	}
	if p.CA != "" {
		// Go reads it in place of the system's file, whichever library asks.
		out = append(out, "SSL_CERT_FILE="+p.CA)
	}
	return out
}

// name is the storage in messages.
func (p *place) name() string {
	if p.Volume != "" {
		return "the volume"
	}
	if p.Provider == ProviderAzblob {
		return "container " + p.Bucket
	}
	return "bucket " + p.Bucket
}

// each calls do with every file below the folder.
func (p *place) each(ctx context.Context, below string, do func(*blob.ListObject) error) error {
	files := p.bucket.List(&blob.ListOptions{Prefix: p.Folder + "/" + below})
	for {
		file, err := files.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.told("list files in", err)
		}
		if err := do(file); err != nil {
			return err
		}
	}
}

// size adds up the files of the tool.
func (p *place) size(ctx context.Context) (int64, error) {
	sum := int64(0)
	err := p.each(ctx, DataFolder+"/", func(file *blob.ListObject) error {
		sum += file.Size
		return nil
	})
	return sum, err
}

// remove deletes the folder if its marker has the UID, and nothing if not. The marker goes
// last, so that a deletion that was interrupted goes on. It says whether it was there.
func (p *place) remove(ctx context.Context, uid string) (bool, error) {
	m, err := p.marker(ctx)
	if err != nil || m == nil || m.UID != uid {
		return false, err
	}
	last := p.markerKey()
	err = p.each(ctx, "", func(file *blob.ListObject) error {
		if file.IsDir || file.Key == last {
			return nil
		}
		return p.delete(ctx, file.Key)
	})
	if err != nil {
		return true, err
	}
	if err := p.delete(ctx, last); err != nil {
		return true, err
	}
	return true, p.removeFolders()
}

func (p *place) delete(ctx context.Context, key string) error {
	if err := p.bucket.Delete(ctx, key); err != nil && codeOf(err) != gcerrors.NotFound {
		return p.told("delete "+key+" in", err)
	}
	return nil
}

// removeFolders removes the empty folders that a volume has and a bucket does not know.
func (p *place) removeFolders() error {
	if p.Volume == "" {
		return nil
	}
	for _, folder := range []string{filepath.Join(p.Volume, p.Folder, DataFolder), filepath.Join(p.Volume, p.Folder)} {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p.told("remove a folder of", err)
		}
	}
	return nil
}

// told names the cause of an error of the storage; nil for none.
func (p *place) told(verb string, err error) error {
	if err == nil {
		return nil
	}
	var known *failure
	if errors.As(err, &known) {
		return err
	}
	reason, why := p.cause(err)
	return fail(reason, "%s %s: %s", verb, p.name(), why)
}

// refusalCodes are codes of errors about keys and rights, of Amazon's servers and others'.
func refusalCodes() []string {
	return []string{"AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem", "InvalidToken", "ExpiredToken", "XAdminUserNotFound"}
}

// cause tells what kind of error it is, and what to do.
func (p *place) cause(err error) (reason, why string) {
	var (
		api      smithy.APIError
		network  net.Error
		response *awshttp.ResponseError
	)
	unknown := strange(err)
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
			return v1alpha1.ReasonStorageRefused, code + ": " + p.doubt()
		default:
			return v1alpha1.ReasonRunFailed, code + ": " + api.ErrorMessage()
		}
	case p.Provider != "" && p.Provider != ProviderS3 && cloudReason(err) != "":
		return cloudReason(err), p.cloudCause(err)
	case unknown != "":
		return v1alpha1.ReasonCertificateInvalid, p.unverified(unknown)
	case errors.As(err, &network):
		return v1alpha1.ReasonStorageUnreachable, p.server() + " does not answer: " + cause.Of(err)
	}
	return v1alpha1.ReasonRunFailed, err.Error()
}

// unverified says that the endpoint's certificate is not one that is trusted, and what to do.
func (p *place) unverified(why string) string {
	if p.CA != "" {
		return fmt.Sprintf("the certificate of %s cannot be verified by %s, which storage.s3.caSecret names: %s", p.Endpoint, p.CAOf, why)
	}
	return fmt.Sprintf("the certificate of %s cannot be verified: %s: if an authority of your own has signed it, create this anew with storage.s3.caSecret", cmp.Or(p.Endpoint, "Amazon S3"), why)
}
