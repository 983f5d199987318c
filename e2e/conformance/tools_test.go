package conformance_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// asRunner has this program be the one that runs in the pods of backups.
const asRunner = "CONFORMANCE_AS_RUNNER"

// runAsRunner is the program backup-runner.
func runAsRunner() int {
	command, err := runner.Parse(os.Args[1:])
	if err == nil {
		err = command.Run(context.Background(), os.Stdout)
	}
	if err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		return 1
	}
	return 0
}

// pods runs the pods of Jobs as the operator renders them: the program with its arguments, real
// tools, and a real TiDB.
type pods struct {
	t    *testing.T
	tidb realTiDB
	// secret is the folder that the Secret with credentials is mounted as.
	secret      string
	environment []string
}

func newPods(t *testing.T, secret map[string]string, environment []string) *pods {
	t.Helper()
	out := &pods{t: t, tidb: newTiDB(t, t.TempDir()), environment: environment}
	out.tidb.statusHost, out.tidb.statusPort = out.tidb.host, "10080" // as it is rendered
	out.tidb.run(t, "")
	out.mount(secret)
	return out
}

func (p *pods) mount(secret map[string]string) {
	p.t.Helper()
	p.secret = p.t.TempDir()
	for key, text := range secret {
		require.NoError(p.t, os.WriteFile(filepath.Join(p.secret, key), []byte(text), 0o600))
	}
}

// group is the TiDBGroup that has the TiDB for a server.
func (p *pods) group() *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Generation: 1}}
	g.Spec.Version, g.Spec.PDGroup.Name = binaries.Release, "a"
	g.Status.Endpoint = net.JoinHostPort(p.tidb.host, p.tidb.port)
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	return g
}

// run runs the Job that is made for a run, and returns what its pod leaves.
func (p *pods) run(of v1alpha1.Run) result.Result {
	p.t.Helper()
	made := job.MakePlan(of, job.Seen{Group: p.group(), Image: "a:b", Now: time.Now()}).Start
	require.NotNil(p.t, made)
	main := made.Spec.Template.Spec.Containers[0]
	own := p.t.TempDir()
	here := map[string]string{corev1.TerminationMessagePathDefault: filepath.Join(own, "result"), ":8290": ""}
	for _, m := range main.VolumeMounts {
		here[m.MountPath] = own
		if m.Name == "storage" {
			here[m.MountPath] = p.secret
		}
	}
	for _, tool := range []string{"dumpling", "tidb-lightning"} {
		program, err := binaries.Path(p.t.Context(), tool)
		require.NoError(p.t, err)
		here["/"+tool] = program
	}
	args := slices.Clone(main.Command[1:])
	for _, arg := range main.Args {
		flag, value, _ := strings.Cut(arg, "=")
		if path, is := here[value]; is {
			value = path
		}
		args = append(args, flag+"="+value)
	}
	program := exec.CommandContext(p.t.Context(), os.Args[0], args...) //nolint:gosec // this very program
	program.Env = append([]string{asRunner + "=1", "TMPDIR=" + own, "HOME=" + own, "PATH=" + os.Getenv("PATH")}, p.environment...)
	log, err := program.CombinedOutput()
	left, readErr := os.ReadFile(here[corev1.TerminationMessagePathDefault])
	require.NoError(p.t, readErr, string(log))
	out, told := result.Read(string(left))
	require.True(p.t, told, string(left))
	require.Equal(p.t, err == nil, out.Reason == "", "%s\n%s", left, log)
	return out
}

// open connects with the TiDB as a client does.
func (p *pods) open() *sql.DB {
	p.t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "root", "tcp", net.JoinHostPort(p.tidb.host, p.tidb.port)
	db, err := sql.Open("mysql", config.FormatDSN())
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = db.Close() })
	require.Eventually(p.t, func() bool { return db.PingContext(p.t.Context()) == nil }, 2*timeout, 100*time.Millisecond)
	return db
}

// sql runs statements in a session of their own, and returns what the last one answers.
func (p *pods) sql(statements ...string) (answer string) {
	p.t.Helper()
	conn, err := p.open().Conn(p.t.Context())
	require.NoError(p.t, err)
	last := len(statements) - 1
	for _, s := range statements[:last] {
		_, err := conn.ExecContext(p.t.Context(), s)
		require.NoError(p.t, err, s)
	}
	require.NoError(p.t, conn.QueryRowContext(p.t.Context(), statements[last]).Scan(&answer))
	return answer
}

// write has transactions write a row of each table, until it is told to stop.
func (p *pods) write() (stop func()) {
	db := p.open()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() {
		var err error
		for id := 2000; err == nil && ctx.Err() == nil; id++ {
			err = insert(p.t.Context(), db, id)
		}
		ended <- err
	}()
	return func() {
		cancel()
		require.NoError(p.t, <-ended)
	}
}

func insert(ctx context.Context, db *sql.DB, id int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, first := tx.ExecContext(ctx, "INSERT INTO shop.orders VALUES (?, 'while it is copied')", id)
	_, second := tx.ExecContext(ctx, "INSERT INTO shop.ledger VALUES (?)", id)
	if err := errors.Join(first, second); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// rows are those of shop.orders, and entries those of shop.ledger that have no order or lack one.
const (
	rows    = "SELECT CONCAT(COUNT(*), ' ', SUM(id * id), ' ', SUM(CRC32(v))) FROM shop.orders"
	entries = "SELECT CONCAT((SELECT COUNT(*) FROM shop.orders WHERE id >= 2000 AND id NOT IN (SELECT id FROM shop.ledger)), ' ', (SELECT COUNT(*) FROM shop.ledger WHERE id NOT IN (SELECT id FROM shop.orders)))"
)

// copyAndBack copies the database to a storage while it is written to, restores it, and deletes
// the copy.
func (p *pods) copyAndBack(at v1alpha1.Storage) {
	p.t.Helper()
	// A TiDB whose collector has not run yet, as this one's never does, reads no moment of the past.
	p.sql("INSERT IGNORE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20200101-00:00:00 +0000', '')",
		"CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, v VARCHAR(40) CHARACTER SET utf8mb4, KEY (v))", "CREATE TABLE shop.ledger (id BIGINT PRIMARY KEY)", "SET SESSION cte_max_recursion_depth = 2000",
		"INSERT INTO shop.orders (id, v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, CONCAT('order ', i, ' ü') FROM n", "SELECT 1")
	stop := p.write()
	b := backupTo(at)
	done := p.run(b)
	stop()
	require.Empty(p.t, done.Message)
	assert.Positive(p.t, done.Bytes)
	// TiDB still has that moment.
	moment := p.sql("SET tidb_snapshot = '"+done.TSO+"'", rows)
	assert.NotEqual(p.t, moment, p.sql(rows), "it was written to meanwhile")
	assert.NotEqual(p.t, "0", p.sql("SET tidb_snapshot = '"+done.TSO+"'", "SELECT COUNT(*) FROM shop.ledger"), "and before")

	r := &v1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "b", UID: "u2"}}
	r.Spec.TiDBGroup.Name = "a"
	r.Spec.From = v1alpha1.RestoreSource{Storage: &at, Folder: b.Name}
	assert.Equal(p.t, v1alpha1.ReasonDatabaseNotEmpty, p.run(r).Reason)
	p.sql("DROP DATABASE shop", "SELECT 1")
	require.Empty(p.t, p.run(r).Message)
	assert.Equal(p.t, moment, p.sql("ADMIN CHECK TABLE shop.orders", rows), "the rows of that moment")
	assert.Equal(p.t, "0 0", p.sql(entries), "no half of a transaction")

	b.Finalizers, b.DeletionTimestamp, b.Spec.CleanupPolicy = []string{v1alpha1.FinalizerBackup}, &metav1.Time{Time: time.Now()}, v1alpha1.CleanupDelete
	require.Empty(p.t, p.run(b).Message)
}

func backupTo(at v1alpha1.Storage) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: "b", UID: "u1"}}
	b.Spec.TiDBGroup.Name, b.Spec.Storage, b.Spec.CleanupPolicy = "a", at, v1alpha1.CleanupRetain
	return b
}

// google is a server of Google Cloud Storage with the bucket copies, which knows one token.
func google(t *testing.T, token string) (dir string, handler http.Handler) {
	t.Helper()
	g := objectstore.Google{Address: loopback.Address(t), Dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(g.Dir, "copies"), 0o700))
	objectstore.Run(t, g.Start)
	at := &url.URL{Scheme: "http", Host: g.Address}
	behind := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	return g.Dir, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	})
}

// Dumpling and TiDB Lightning, with what is rendered for them.
func TestBR04TheRealToolsCopyToGoogleAndBack(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	dir, server := google(t, "a-token")
	p := newPods(t, map[string]string{storage.CredentialsFile: objectstore.ServiceAccount(t, "a-token", http.StatusOK)}, front(t, map[string]http.Handler{"storage.googleapis.com": server}))
	at := v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: "copies", Prefix: "prod", Secret: &v1alpha1.LocalReference{Name: "keys"}}}
	p.copyAndBack(at)
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "copies"), func(path string, entry fs.DirEntry, err error) error {
		assert.True(t, entry.IsDir(), "%s was to be deleted", path)
		return err
	}))

	nowhere := v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: "nothing", Secret: at.GCS.Secret}}
	assert.Equal(t, v1alpha1.ReasonBucketMissing, p.run(backupTo(nowhere)).Reason)
	p.mount(map[string]string{storage.CredentialsFile: objectstore.ServiceAccount(t, "another", http.StatusOK)})
	assert.Equal(t, v1alpha1.ReasonStorageRefused, p.run(backupTo(at)).Reason)
}
