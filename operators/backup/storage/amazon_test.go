package storage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

const podToken = "a-token-of-the-pod" //nolint:gosec // a word of the test

// withoutAmazon makes sure that nothing of the machine's own is taken for the pod's.
func withoutAmazon(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{roleToken, roleAgent, "AWS_ROLE_ARN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
}

// tokenFile is where a token is mounted.
func tokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(podToken), 0o600))
	return file
}

// roleByToken plays the service that changes a token into keys of a role, and the pod that has it. The
// server of S3 knows no session but an empty one.
func roleByToken(t *testing.T, accessKey, session string) {
	t.Helper()
	withoutAmazon(t)
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("WebIdentityToken") != podToken || r.FormValue("RoleArn") != "arn:aws:iam::1:role/copier" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			accessKey, secret, session, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/copier")
	t.Setenv(roleToken, tokenFile(t))
}

// roleByAgent plays the agent of a node, and the pod that may ask it.
func roleByAgent(t *testing.T) {
	t.Helper()
	withoutAmazon(t)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != podToken {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"AccessKeyId": access, "SecretAccessKey": secret, "Expiration": time.Now().Add(time.Hour).UTC()})
	}))
	t.Cleanup(agent.Close)
	t.Setenv(roleAgent, agent.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", tokenFile(t))
}

// ofRole is a folder of the server for a pod without keys.
func (s server) ofRole(t *testing.T) Storage {
	t.Helper()
	out := s.storage(t)
	out.Credentials, out.CredentialsOf = "", ""
	return out
}

func TestBR04ABucketOfAmazonIsReachedByTheRoleOfThePod(t *testing.T) {
	s := serve(t)
	for name, role := range map[string]func(*testing.T){
		"by a token":  func(t *testing.T) { roleByToken(t, access, "") },
		"by an agent": roleByAgent,
	} {
		t.Run(name, func(t *testing.T) {
			role(t)
			p, err := look(t.Context(), s.ofRole(t), "u")
			require.NoError(t, err)
			assert.Contains(t, objectstore.Files(t, filepath.Join(s.dir, "copies")), "prod/monday/backup.json")
			env := p.Env()
			if name == "by an agent" { // which the tools of v7.1 and v7.5 do not ask
				at, found := strings.CutPrefix(env[len(env)-1], "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:")
				require.True(t, found, env)
				assert.Equal(t, access+" "+secret, keysAt(t, "http://127.0.0.1:"+at))
				env = env[:len(env)-1]
			}
			assert.Equal(t, []string{"AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true"}, env, "the tools ask for the role themselves: no keys stand in its way")
			there, err := p.Remove(t.Context(), "u")
			require.NoError(t, err)
			assert.True(t, there)
		})
	}
}

// keysAt are those that a tool gets there.
func keysAt(t *testing.T, at string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, answer.Body.Close()) }()
	var keys struct{ AccessKeyID, SecretAccessKey string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&keys))
	return keys.AccessKeyID + " " + keys.SecretAccessKey
}

func TestBR04TheReasonWhyAPodHasNoRoleIsReported(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct {
		role          func(*testing.T)
		reason, words string
	}{
		"none": {
			withoutAmazon, v1alpha1.ReasonStorageRefused,
			"the pod has no AWS role, and storage.s3 names no secret: set spec.serviceAccountName to a ServiceAccount with an AWS role, or storage.s3.secret in another object",
		},
		"one that it may not have": {
			func(t *testing.T) { roleByToken(t, access, ""); t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/other") }, v1alpha1.ReasonStorageRefused,
			"the pod does not get the role of its ServiceAccount: AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity: does the role's trust policy name the ServiceAccount?",
		},
		"a token that is not there": {
			func(t *testing.T) { roleByToken(t, access, ""); t.Setenv(roleToken, "/nowhere/token") }, v1alpha1.ReasonStorageRefused,
			"the pod does not get the role of its ServiceAccount: ",
		},
		"no server answers": {
			func(t *testing.T) {
				roleByToken(t, access, "")
				t.Setenv("AWS_ENDPOINT_URL_STS", "http://"+loopback.Address(t))
			}, v1alpha1.ReasonStorageUnreachable,
			"the service that gives the pod the role of its ServiceAccount does not answer: ",
		},
		"a session that has ended": {
			func(t *testing.T) { roleByToken(t, access, "a-session") }, v1alpha1.ReasonStorageRefused,
			"look into bucket copies: InvalidToken: may the role of the pod's ServiceAccount list, read, write and delete there?",
		},
		"one that has no rights": {
			func(t *testing.T) { roleByToken(t, "another", "") }, v1alpha1.ReasonStorageRefused,
			"look into bucket copies: XAdminUserNotFound: may the role of the pod's ServiceAccount list, read, write and delete there?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.role(t)
			_, err := look(t.Context(), s.ofRole(t), "u")
			require.Error(t, err)
			r := failure.NewResult(err, "", false)
			assert.Equal(t, c.reason, r.Reason, r.Message)
			assert.Contains(t, r.Message, c.words)
			assert.False(t, r.Begun, "it is tried again")
			assert.Empty(t, objectstore.Files(t, filepath.Join(s.dir, "copies")))
		})
	}
}

// Servers of others than Amazon tell no region of a bucket, or another one: the tools refuse that
// unless they are told so.
func TestBR01ARegionOfAnotherThanAmazonsServersIsTaken(t *testing.T) {
	p := &Place{Storage: Storage{Bucket: "copies", Region: "gra", Folder: "monday", Endpoint: "https://s3.example.com"}}
	assert.Equal(t, "s3://copies/monday/data?endpoint=https://s3.example.com&force-path-style=false&provider=ceph&region=gra", unescaped(t, p.URL()))
	p.Endpoint = ""
	assert.Equal(t, "s3://copies/monday/data?force-path-style=false&region=gra", p.URL())
}
