package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

const (
	// AccessKey is whom the server of S3 knows.
	AccessKey = "rig-access-key"
	// SecretKey is how it knows him.
	SecretKey = "rig-secret-key"
	// Bucket is its only one.
	Bucket = "copies"

	// holdTTL is how long PD holds data back for BR.
	holdTTL = 5 * time.Minute
)

// s3 is a server of S3, whose bucket is a folder.
type s3 struct{ url, dir string }

// s3Starter returns a server of S3 on a folder, started when it is asked for first.
func s3Starter(ctx context.Context, dir string) func() (*s3, error) {
	return func() (*s3, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port for S3: %w", err)
		}
		address := l.Addr().String()
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("find a port for S3: %w", err)
		}
		s := objectstore.Server{
			Address: address, Dir: filepath.Join(dir, "s3"), Beside: filepath.Join(dir, "metadata-of-s3"), AccessKey: AccessKey, SecretKey: SecretKey,
		}
		if err := os.MkdirAll(filepath.Join(s.Dir, Bucket), 0o700); err != nil {
			return nil, fmt.Errorf("make a folder for S3: %w", err)
		}
		_, err = s.Start(ctx) // it is killed when the rig ends
		return &s3{url: s.URL(), dir: s.Dir}, err
	}
}

// lead has a physical run reach the server of S3 and PD, and plays BR in it.
func (a *actor) lead(command *runner.Command, cluster types.NamespacedName) error {
	if command.Storage.Bucket == "" {
		return nil
	}
	server, err := a.stores()
	if err != nil {
		return err
	}
	command.Storage.Endpoint = server.url
	if command.Cluster.PD == "" {
		return nil
	}
	db, err := a.databases.Of(cluster)
	if err != nil {
		return err
	}
	command.Cluster.PD = db.URL()
	command.Start = func(ctx context.Context, tool runner.Process) error { return br{server, db}.run(ctx, tool) }
	return nil
}

// writeFile writes a file, and makes its folder.
func writeFile(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// br plays BR: it takes the flags that are documented, has PD hold back what it copies and
// pauses a scheduler, as a restore does, and leaves both. Of a database called endless it
// copies no end, and of one called broken it fails.
type br struct {
	server *s3
	db     *Database
}

func (b br) run(ctx context.Context, tool runner.Process) error {
	flags, err := brFlags(tool.Args)
	if err == nil && tool.Args[0] == "log" {
		err = b.log(tool, flags)
	}
	if err != nil {
		_, _ = fmt.Fprintln(tool.Out, "Error:", err)
		return err
	}
	if tool.Args[0] == "log" {
		return nil
	}
	at, err := url.Parse(flags["storage"])
	if err != nil {
		return fmt.Errorf("read the storage: %w", err)
	}
	tso, err := strconv.ParseUint(memorydb.TSO, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time stamp: %w", err)
	}
	cluster := b.db.Model().Cluster()
	if cluster == nil {
		return errNoLeader
	}
	if _, err := cluster.UpdateServiceSafePoint("br-"+filepath.Base(filepath.Dir(at.Path)), holdTTL, tso-1); err != nil {
		return fmt.Errorf("hold data back: %w", err)
	}
	if err := cluster.PauseScheduler("balance-leader-scheduler", holdTTL); err != nil {
		return fmt.Errorf("pause a scheduler: %w", err)
	}
	if point := flags["full-backup-storage"]; point != "" {
		if at, err = url.Parse(point); err != nil {
			return fmt.Errorf("read the storage of the full backup: %w", err)
		}
	}
	meta := filepath.Join(b.server.dir, at.Host, at.Path, "backupmeta")
	if tool.Args[0] == "restore" {
		if err := b.db.restorable(); err != nil {
			_, _ = fmt.Fprintln(tool.Out, "Error:", err)
			return err
		}
		_, err := os.Stat(meta)
		return err
	}
	if err := writeFile(meta, "meta"); err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	switch {
	case strings.Contains(flags["filter"], "endless"):
		<-ctx.Done()
		return ctx.Err()
	case strings.Contains(flags["filter"], "broken"):
		_, _ = fmt.Fprintln(tool.Out, "Error: [BR:KV:ErrKVUnknown]the stores are broken")
		return errors.New("exit status 1")
	}
	return nil
}

// brCommands are the commands of BR, with the flags that each takes in all versions.
func brCommands() map[string][]string {
	return map[string][]string{
		"backup full":   {"pd", "storage", "backupts", "filter", "concurrency", "ratelimit", "checksum", "use-checkpoint"},
		"restore full":  {"pd", "storage", "filter", "tikv-max-restore-concurrency", "ratelimit", "checksum", "with-sys-table", "use-checkpoint"},
		"restore point": {"pd", "storage", "full-backup-storage", "restored-ts", "with-sys-table", "use-checkpoint"},
		"log start":     {"pd", "storage", "task-name"},
		"log pause":     {"pd", "task-name"},
		"log resume":    {"pd", "task-name"},
		"log stop":      {"pd", "task-name"},
		"log status":    {"pd", "json"},
		"log truncate":  {"storage", "until", "yes"},
		"log metadata":  {"storage"},
	}
}

// brFlags reads the command line of BR.
func brFlags(args []string) (map[string]string, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("unknown command %v", args)
	}
	known := brCommands()[args[0]+" "+args[1]]
	if known == nil {
		return nil, fmt.Errorf("unknown command %v", args)
	}
	out := map[string]string{}
	for rest := args[2:]; len(rest) > 0; {
		name, value, joined := strings.Cut(strings.TrimPrefix(rest[0], "--"), "=")
		rest = rest[1:]
		if !joined && len(rest) > 0 && !slices.Contains([]string{"json", "yes"}, name) {
			value, rest = rest[0], rest[1:]
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown flag: --%s", name)
		}
		out[name] = value
	}
	return out, nil
}
