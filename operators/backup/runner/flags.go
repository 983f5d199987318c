package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/operators/backup/cluster"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Verbs of the program beside install.
const (
	VerbBackup  = "backup"
	VerbRestore = "restore"
	VerbClean   = "clean"
	VerbLog     = "log"
)

// Process is a tool that is to run until it ends, or the context does.
type Process struct {
	Program, Dir string
	Args, Env    []string
	// Out is where both outputs go.
	Out io.Writer
}

// Log is a log backup: of the verb log what its task is to be, of a restore what is restored
// after the backup.
type Log struct {
	// Task is the name of the task, and State what it is to be: Running, Paused or Stopped.
	Task, State string
	// Begun is the time stamp that the task was last seen to begin at; empty if it never was.
	Begun string
	// Truncate is the time stamp before which the log is deleted; empty for none.
	Truncate string
	// Folder of the log that is restored, UID of its LogBackup if that is known, and Until
	// the time stamp that it is restored to, empty for all of it.
	Folder, UID, Until string
}

// Command is a command line that has been read.
type Command struct {
	hook.Line
	Storage  storage.Storage
	Database database.Server
	// Cluster says that the run is a physical one.
	Cluster cluster.Cluster
	// Log is a log backup, if the run has to do with one.
	Log Log
	// UID of the Backup whose files they are; empty if that is not known.
	UID string
	// Tool is the program to run. Start runs it; nil does so as a process.
	Tool  string
	Start func(ctx context.Context, tool Process) error
	// Threads of Dumpling or TiDB Lightning; 0 for the tool's own number.
	Threads int
	// Databases, Tables and Filters choose what is copied.
	Databases, Tables, Filters []string
	// AllowNonEmpty lets a restore write into a cluster with databases of users.
	AllowNonEmpty bool
	// Result is the file that the result goes to.
	Result string
	// Progress is the address at which the program reports how far the tool is; empty for none.
	Progress string
	// meter reads it from the tool's log.
	meter *progress.Meter
	// Scratch is a folder for files of the run's own.
	Scratch string
	// ConnectTimeout is for how long the database may not answer at the start.
	ConnectTimeout time.Duration
}

// many is a flag that may come several times.
type many []string

func (m *many) String() string { return strings.Join(*m, ",") }

// Set implements flag.Value.
func (m *many) Set(value string) error {
	*m = append(*m, value)
	return nil
}

// Parse reads a command line without the program's name.
func Parse(args []string) (Command, error) {
	var c Command
	line, err := hook.ParseLine(args, []string{VerbBackup, VerbRestore, VerbClean, VerbLog}, c.addFlags)
	c.Line = line
	if err != nil || line.Verb == "install" {
		return c, err
	}
	switch {
	case c.Result == "" || c.Storage.Folder == "":
		return c, errors.New("want --result and --folder")
	case (c.Storage.Volume == "") == (c.Storage.Bucket == ""):
		return c, errors.New("want one of --volume and --bucket")
	case c.Storage.Credentials == "" && (c.Storage.Provider == storage.ProviderAzblob || c.Cluster.PD != ""):
		return c, errors.New("--provider azblob and --pd want --credentials")
	case !slices.Contains([]string{storage.ProviderS3, storage.ProviderGCS, storage.ProviderAzblob}, c.Storage.Provider) || (c.Storage.Provider == storage.ProviderAzblob) != (c.Storage.Account != ""):
		return c, errors.New("want --provider s3 or gcs, or azblob and --account")
	case line.Verb != VerbRestore && c.UID == "":
		return c, fmt.Errorf("%s wants --uid", line.Verb)
	case c.Cluster.PD != "" && c.Storage.Bucket == "":
		return c, errors.New("--pd wants --bucket")
	case line.Verb == VerbLog && (c.Log.Task == "" || c.Cluster.PD == "" || c.Tool == "" || !slices.Contains([]string{result.TaskRunning, result.TaskPaused, result.TaskStopped}, c.Log.State)):
		return c, errors.New("log wants --task, --pd, --tool and --state")
	case line.Verb != VerbClean && line.Verb != VerbLog && (c.Database.Host == "" || c.Tool == "" || c.Scratch == ""):
		return c, fmt.Errorf("%s wants --host, --tool and --scratch", line.Verb)
	}
	c.Storage.Stores = c.Cluster.PD != ""
	return c, nil
}

func (c *Command) addFlags(set *flag.FlagSet) {
	set.StringVar(&c.Storage.Volume, "volume", "", "folder that a volume is mounted at")
	set.StringVar(&c.Storage.Provider, "provider", storage.ProviderS3, "s3, gcs or azblob")
	set.StringVar(&c.Storage.Account, "account", "", "account of Azure")
	set.StringVar(&c.Storage.Bucket, "bucket", "", "bucket, or container of Azure")
	set.StringVar(&c.Storage.Endpoint, "endpoint", "", "URL of the server of S3")
	set.StringVar(&c.Storage.Region, "region", "us-east-1", "region of the bucket")
	set.BoolVar(&c.Storage.PathStyle, "path-style", true, "the bucket is in the path of URLs")
	set.StringVar(&c.Storage.Credentials, "credentials", "", "folder with access_key and secret_key")
	set.StringVar(&c.Storage.CredentialsOf, "credentials-of", "", "what the folder is made from, for messages")
	set.StringVar(&c.Storage.CA, "storage-ca", "", "file with the certificate of the endpoint's authority")
	set.StringVar(&c.Storage.CAOf, "storage-ca-of", "", "what the file is made from, for messages")
	set.StringVar(&c.Storage.Folder, "folder", "", "folder of the backup in the storage")
	set.StringVar(&c.Database.Host, "host", "", "host of TiDB")
	set.IntVar(&c.Database.Port, "port", 4000, "MySQL port of TiDB") //nolint:mnd // TiDB's own
	set.IntVar(&c.Database.Status, "status-port", 10080, "status port of TiDB")
	set.StringVar(&c.Database.User, "user", "root", "user to connect as")
	set.StringVar(&c.Database.Password, "password", "", "file with the password")
	set.StringVar(&c.Database.PasswordOf, "password-of", "", "what the file is made from, for messages")
	set.StringVar(&c.Database.TLS, "tls", "", "folder with ca.crt of TiDB's certificate, and tls.crt and tls.key to show, if it wants one")
	set.StringVar(&c.Database.TLSOf, "tls-of", "", "what the folder is made from, for messages")
	set.StringVar(&c.Cluster.PD, "pd", "", "URL of PD, for a physical run")
	set.StringVar(&c.Cluster.TLS, "pd-tls", "", "folder with ca.crt, tls.crt and tls.key for PD and TiKV")
	set.IntVar(&c.Threads, "threads", 0, "threads of Dumpling or TiDB Lightning; 0 for its own number")
	set.StringVar(&c.Cluster.Concurrency, "concurrency", "", "threads of BR")
	set.StringVar(&c.Cluster.RateLimit, "rate-limit", "", "MiB in a second of each store")
	set.StringVar(&c.Cluster.Checksum, "checksum", "", "whether BR compares checksums")
	set.StringVar(&c.Log.Task, "task", "", "name of the task of log backup")
	set.StringVar(&c.Log.State, "state", "", "wanted state of that task")
	set.StringVar(&c.Log.Begun, "begun", "", "time stamp that the task was seen to begin at")
	set.StringVar(&c.Log.Truncate, "truncate", "", "time stamp before which the log is deleted")
	set.StringVar(&c.Log.Folder, "log-folder", "", "folder of the log to restore")
	set.StringVar(&c.Log.UID, "log-uid", "", "UID of the LogBackup whose log it is")
	set.StringVar(&c.Log.Until, "until", "", "time stamp to restore the log to")
	set.StringVar(&c.UID, "uid", "", "UID of the Backup")
	set.StringVar(&c.Tool, "tool", "", "program to run")
	set.Var((*many)(&c.Databases), "database", "database to copy, may be repeated")
	set.Var((*many)(&c.Tables), "table", "table to copy, may be repeated")
	set.Var((*many)(&c.Filters), "filter", "table filter, may be repeated")
	set.BoolVar(&c.AllowNonEmpty, "allow-non-empty", false, "restore beside databases of users")
	set.StringVar(&c.Result, "result", "", "file for the result")
	set.StringVar(&c.Progress, "progress", "", "address that serves the tool's progress")
	set.StringVar(&c.Scratch, "scratch", "", "folder for files of the run")
	set.DurationVar(&c.ConnectTimeout, "connect-timeout", time.Minute, "for how long the database may not answer at the start")
}
