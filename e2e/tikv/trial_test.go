package tikv_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trialEnv asks for the trial, which needs PD and TiDB: its value is how many times
// it runs. The first time builds both, which takes minutes.
const trialEnv = "TIKV_TRIAL"

// timeout is how long anything may take on a machine that has other things to do.
const timeout = 3 * time.Minute

// world is PDs, stores and a TiDB as processes on the loopback.
type world struct {
	t        *testing.T
	dir      string
	programs map[string]string
	running  map[string]*process
	pds      []int // client ports
	sql      int   // TiDB's port
}

type process struct {
	*exec.Cmd
	program string
	args    []string
	ended   chan struct{}
}

// programs builds what the trial runs.
func programs(t *testing.T) map[string]string {
	t.Helper()
	run := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err, args)
		return string(out)
	}
	store := filepath.Join(t.TempDir(), "tikv-server")
	run(".", "build", "-ldflags", "-s -w -checklinkname=0", "-o", store, "./cmd/tikv-server")
	found := map[string]string{"tikv-server": store}
	for path := range strings.FieldsSeq(run("../../shared", "run", "./testkit/binaries/cmd/toolbin", "pd-server", "tidb-server")) {
		found[filepath.Base(path)] = path
	}
	return found
}

func port(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func (w *world) start(name, program string, args ...string) {
	w.t.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	p := &process{Cmd: exec.Command(w.programs[program], args...), program: program, args: args, ended: make(chan struct{})} //nolint:noctx // ended by end and kill
	p.Stdout, p.Stderr = log, log
	// Nothing outlives the test.
	p.Dir = w.dir
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(w.t, p.Start())
	w.running[name] = p
	go func() {
		_ = p.Wait() // how it ended shows in what it no longer does
		_ = log.Close()
		close(p.ended)
	}()
}

// stop ends a process with a signal and waits for it.
func (w *world) stop(name string, signal os.Signal) {
	w.t.Helper()
	p := w.running[name]
	require.NoError(w.t, p.Process.Signal(signal))
	select {
	case <-p.ended:
	case <-time.After(timeout):
		require.Fail(w.t, "it does not end", name)
	}
}

func (w *world) again(name string) {
	w.t.Helper()
	p := w.running[name]
	w.start(name, p.program, p.args...)
}

// found starts PDs, stores and a TiDB, and waits until it answers.
func found(t *testing.T, binaries map[string]string, pds, stores int) *world {
	t.Helper()
	dir := t.TempDir()
	if keep := os.Getenv("TIKV_TRIAL_DIR"); keep != "" {
		dir = filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-"))
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	w := &world{t: t, dir: dir, programs: binaries, running: map[string]*process{}}
	t.Cleanup(func() {
		for _, p := range w.running {
			_ = p.Process.Kill()
			<-p.ended
		}
	})
	var initial []string
	var peers []int
	for i := range pds {
		w.pds = append(w.pds, port(t))
		peers = append(peers, port(t))
		initial = append(initial, fmt.Sprintf("pd%d=http://%s", i, local(peers[i])))
	}
	for i := range pds {
		w.start(fmt.Sprintf("pd%d", i), "pd-server", fmt.Sprintf("--name=pd%d", i), "--data-dir="+filepath.Join(w.dir, fmt.Sprintf("pd%d", i)),
			"--client-urls=http://"+local(w.pds[i]), "--peer-urls=http://"+local(peers[i]), "--initial-cluster="+strings.Join(initial, ","))
	}
	for i := range stores {
		w.store(i)
	}
	w.hurry()
	var all []string
	for i := range stores {
		all = append(all, storeName(i))
	}
	w.replicated(min(stores, 3), all...)
	w.sql = port(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "tidb.toml"), []byte("new_collations_enabled_on_first_bootstrap = true\n[log]\nlevel = \"warn\"\n"), 0o600))
	w.start("tidb", "tidb-server", "--store=tikv", "--path="+w.endpoints(), "--host=127.0.0.1", fmt.Sprintf("-P=%d", w.sql),
		fmt.Sprintf("--status=%d", port(t)), "--config="+filepath.Join(w.dir, "tidb.toml"), "--socket=", "--temp-dir="+filepath.Join(w.dir, "tmp"))
	db := w.open("")
	defer func() { _ = db.Close() }()
	w.until("TiDB answers", func() error { return db.PingContext(t.Context()) })
	return w
}

func (w *world) endpoints() string {
	var all []string
	for _, p := range w.pds {
		all = append(all, local(p))
	}
	return strings.Join(all, ",")
}

func storeName(i int) string { return fmt.Sprintf("kv%d", i) }

func (w *world) store(i int) {
	w.t.Helper()
	w.start(storeName(i), "tikv-server", "--pd="+w.endpoints(), "--addr="+local(port(w.t)), "--status-addr="+local(port(w.t)),
		"--data-dir="+filepath.Join(w.dir, storeName(i)))
}

// flag is the value of a store's flag.
func (w *world) flag(store, name string) string {
	for _, arg := range w.running[store].args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

func (w *world) open(database string) *sql.DB {
	w.t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s)/%s?timeout=5s&readTimeout=60s", local(w.sql), database))
	require.NoError(w.t, err)
	return db
}

// until waits for something to succeed.
func (w *world) until(what string, try func() error) {
	w.t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < timeout; <-time.After(100 * time.Millisecond) {
		if err = try(); err == nil {
			w.t.Logf("%-50s %s", what, time.Since(begin).Round(100*time.Millisecond))
			return
		}
	}
	require.NoError(w.t, err, what)
}

// pd asks PD's API, whichever member answers.
func (w *world) pd(method, path string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	var failed []error
	for _, p := range w.pds {
		if err := ask(w.t.Context(), method, "http://"+local(p)+"/pd/api/v1"+path, raw, into); err != nil {
			failed = append(failed, err)
			continue
		}
		return nil
	}
	return errors.Join(failed...)
}

func ask(ctx context.Context, method, url string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

type storeInfo struct {
	Store struct {
		ID      uint64 `json:"id"`
		Address string `json:"address"`
		State   string `json:"state_name"`
	} `json:"store"`
	Status struct {
		Leaders int `json:"leader_count"`
		Regions int `json:"region_count"`
	} `json:"status"`
}

// info is what PD says of a store, whichever state it is in.
func (w *world) info(store string) (storeInfo, error) {
	var all struct {
		Stores []storeInfo `json:"stores"`
	}
	if err := w.pd(http.MethodGet, "/stores?state=0&state=1&state=2", nil, &all); err != nil {
		return storeInfo{}, err
	}
	for _, s := range all.Stores {
		if s.Store.Address == w.flag(store, "addr") {
			return s, nil
		}
	}
	return storeInfo{}, fmt.Errorf("PD does not know %s", store)
}

type report struct {
	Region   *metapb.Region `json:"region"`
	Applied  uint64         `json:"applied"`
	Checksum string         `json:"checksum"`
}

// replicasAgree compares the replicas of all regions on the named stores.
func (w *world) replicasAgree(replicas int, stores ...string) error {
	first, count := map[uint64]report{}, map[uint64]int{}
	for _, name := range stores {
		var regions []report
		if err := ask(w.t.Context(), http.MethodGet, "http://"+w.flag(name, "status-addr")+"/debug/regions", nil, &regions); err != nil {
			return err
		}
		for _, r := range regions {
			if len(r.Region.GetPeers()) == 0 {
				return fmt.Errorf("%s: region %d is empty", name, r.Region.Id)
			}
			count[r.Region.Id]++
			one, seen := first[r.Region.Id]
			switch {
			case !seen:
				first[r.Region.Id] = r
			case one.Applied != r.Applied:
				return fmt.Errorf("region %d: %d is applied, on %s %d", r.Region.Id, one.Applied, name, r.Applied)
			case one.Checksum != r.Checksum:
				return fmt.Errorf("region %d: at %d the checksum is %s, on %s %s", r.Region.Id, r.Applied, one.Checksum, name, r.Checksum)
			}
		}
	}
	for id, n := range count {
		if n != replicas {
			return fmt.Errorf("region %d has %d replicas", id, n)
		}
	}
	if len(count) == 0 {
		return errors.New("there are no regions")
	}
	return nil
}

// hurry lifts the limit of 15 peers a minute that PD adds to a store or takes from it.
func (w *world) hurry() {
	w.t.Helper()
	w.until("PD may move peers quickly", func() error {
		return errors.Join(w.pd(http.MethodPost, "/stores/limit", map[string]any{"rate": 2000, "type": "add-peer"}, nil),
			w.pd(http.MethodPost, "/stores/limit", map[string]any{"rate": 2000, "type": "remove-peer"}, nil))
	})
}

// replicated waits until all regions on the named stores have so many peers.
func (w *world) replicated(replicas int, stores ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d replicas on %s", replicas, strings.Join(stores, " ")), func() error {
		for _, s := range stores {
			var regions []report
			if err := ask(w.t.Context(), http.MethodGet, "http://"+w.flag(s, "status-addr")+"/debug/regions?checksum=false", nil, &regions); err != nil {
				return err
			}
			for _, r := range regions {
				if len(r.Region.GetPeers()) != replicas {
					return fmt.Errorf("region %d has %d peers", r.Region.GetId(), len(r.Region.GetPeers()))
				}
			}
			if len(regions) == 0 {
				return errors.New("there are no regions")
			}
		}
		return nil
	})
}

// load is clients that insert numbers and move money, and what they were told.
type load struct {
	w    *world
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	rows    map[int]bool // acknowledged inserts
	moves   int
	failed  int
	last    map[string]time.Time // when a client last succeeded
	longest time.Duration
	when    string // what was done during the longest pause
	doing   string
}

const (
	inserters = 2
	movers    = 3
	accounts  = 20
	balance   = 1000
)

func (w *world) load() *load {
	w.t.Helper()
	db := w.open("")
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		"CREATE DATABASE IF NOT EXISTS trial",
		"CREATE TABLE trial.numbers (id BIGINT PRIMARY KEY, client INT, text VARCHAR(200), KEY(client), KEY(text))",
		"CREATE TABLE trial.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, changes INT NOT NULL DEFAULT 0, KEY(balance))",
	} {
		w.until(statement, func() error { _, err := db.ExecContext(w.t.Context(), statement); return err })
	}
	for i := range accounts {
		_, err := db.ExecContext(w.t.Context(), "INSERT IGNORE INTO trial.accounts (id, balance) VALUES (?, ?)", i, balance)
		require.NoError(w.t, err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	l := &load{w: w, stop: cancel, rows: map[int]bool{}, last: map[string]time.Time{}}
	for i := range inserters {
		l.client(ctx, fmt.Sprintf("insert%d", i), l.insert(i))
	}
	for i := range movers {
		l.client(ctx, fmt.Sprintf("move%d", i), l.move(i%2 == 0))
	}
	return l
}

func (l *load) client(ctx context.Context, name string, do func(ctx context.Context, db *sql.DB) error) {
	db := l.w.open("trial")
	l.work.Go(func() {
		defer func() { _ = db.Close() }()
		last := time.Now()
		for ctx.Err() == nil {
			err := do(ctx, db)
			l.mu.Lock()
			if err != nil {
				l.failed++
			} else {
				if pause := time.Since(last); pause > l.longest {
					l.longest, l.when = pause, l.doing
				}
				last = time.Now()
				l.last[name] = last
			}
			l.mu.Unlock()
			if err != nil {
				<-time.After(20 * time.Millisecond)
			}
		}
	})
}

// insert inserts numbers, each again until it is acknowledged.
func (l *load) insert(client int) func(context.Context, *sql.DB) error {
	next := client
	return func(ctx context.Context, db *sql.DB) error {
		text := fmt.Sprintf("%d-%s", next, strings.Repeat("x", rand.IntN(100)))
		if _, err := db.ExecContext(ctx, "INSERT IGNORE INTO numbers VALUES (?, ?, ?)", next, client, text); err != nil {
			return err
		}
		l.mu.Lock()
		l.rows[next] = true
		l.mu.Unlock()
		next += inserters
		return nil
	}
}

// move moves money between two accounts in a transaction.
func (l *load) move(pessimistic bool) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		begin := "BEGIN OPTIMISTIC"
		if pessimistic {
			begin = "BEGIN PESSIMISTIC"
		}
		run := func(statement string, args ...any) {
			if err == nil {
				_, err = conn.ExecContext(ctx, statement, args...)
			}
		}
		from, to, amount := rand.IntN(accounts), rand.IntN(accounts), rand.IntN(20)
		run(begin)
		run("UPDATE accounts SET balance = balance - ?, changes = changes + 1 WHERE id = ?", amount, from)
		run("UPDATE accounts SET balance = balance + ?, changes = changes + 1 WHERE id = ?", amount, to)
		run("COMMIT")
		if err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK") // may be gone already
			return err
		}
		var sum int64
		if err := conn.QueryRowContext(ctx, "SELECT SUM(balance) FROM accounts").Scan(&sum); err != nil {
			return err
		}
		assert.EqualValues(l.w.t, accounts*balance, sum, "money")
		l.mu.Lock()
		l.moves++
		l.mu.Unlock()
		return nil
	}
}

// during does something under load, and sees to it that all clients go on afterwards.
func (l *load) during(what string, do func()) {
	l.w.t.Helper()
	l.mu.Lock()
	l.doing = what
	l.mu.Unlock()
	do()
	since := time.Now()
	l.w.until("all clients go on after: "+what, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.last) < inserters+movers {
			return errors.New("some have done nothing yet")
		}
		for client, last := range l.last {
			if last.Before(since) {
				return fmt.Errorf("%s waits since %s", client, time.Since(last))
			}
		}
		return nil
	})
}

// end stops the clients and checks all they were told.
func (l *load) end() {
	t := l.w.t
	t.Helper()
	l.stop()
	l.work.Wait()
	t.Logf("%d rows and %d moves acknowledged, %d statements failed, longest pause %s during: %s", len(l.rows), l.moves, l.failed, l.longest, l.when)
	db := l.w.open("trial")
	defer func() { _ = db.Close() }()
	there := map[int]bool{}
	l.w.until("read all rows", func() error {
		rows, err := db.QueryContext(t.Context(), "SELECT id FROM numbers")
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var id int
			if err := rows.Scan(&id); err != nil {
				return err
			}
			there[id] = true
		}
		return rows.Err()
	})
	var lost []int
	for id := range l.rows {
		if !there[id] {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	require.Empty(t, lost, "lost rows")
	require.NotEmpty(t, l.rows)
	var sum int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT SUM(balance) FROM accounts").Scan(&sum))
	require.EqualValues(t, accounts*balance, sum)
	var changes int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT SUM(changes) FROM accounts").Scan(&changes))
	require.GreaterOrEqual(t, changes, 2*l.moves-l.moves/accounts-l.moves, "moves that were acknowledged")
	for _, table := range []string{"numbers", "accounts"} {
		l.w.until("admin check table "+table, func() error {
			_, err := db.ExecContext(t.Context(), "ADMIN CHECK TABLE "+table)
			return err
		})
	}
}

func TestRealPDAndTiDBKeepTheirRows(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv(trialEnv))
	if err != nil {
		t.Skipf("set %s to the number of runs: it takes a real PD and TiDB", trialEnv)
	}
	binaries := programs(t)
	for i := range times {
		t.Run(fmt.Sprint(i), func(t *testing.T) { trial(t, binaries) })
	}
}

func trial(t *testing.T, binaries map[string]string) {
	w := found(t, binaries, 3, 3)
	l := w.load()
	first := []string{storeName(0), storeName(1), storeName(2)}
	l.during("replication", func() { w.replicated(3, first...) })
	for _, s := range first {
		l.during("kill "+s, func() { w.stop(s, syscall.SIGKILL) })
		l.during("restart "+s, func() { w.again(s) })
	}
	l.during("evict leaders", func() {
		info, err := w.info(first[1])
		require.NoError(t, err)
		w.until("add the scheduler", func() error {
			return w.pd(http.MethodPost, "/schedulers", map[string]any{"name": "evict-leader-scheduler", "store_id": info.Store.ID}, nil)
		})
		w.until("no leader is left", func() error {
			info, err := w.info(first[1])
			if err == nil && info.Status.Leaders > 0 {
				return fmt.Errorf("%d leaders", info.Status.Leaders)
			}
			return err
		})
		w.until("remove the scheduler", func() error {
			return w.pd(http.MethodDelete, "/schedulers/evict-leader-scheduler-"+strconv.FormatUint(info.Store.ID, 10), nil, nil)
		})
	})
	l.during("kill PD's leader", func() {
		var leader struct {
			Name string `json:"name"`
		}
		w.until("find PD's leader", func() error { return w.pd(http.MethodGet, "/leader", nil, &leader) })
		w.stop(leader.Name, syscall.SIGKILL)
		w.again(leader.Name)
	})
	l.during("add a store", func() {
		w.store(3)
		w.until("it has regions", func() error {
			info, err := w.info(storeName(3))
			if err == nil && info.Status.Regions < 5 {
				return fmt.Errorf("%d regions", info.Status.Regions)
			}
			return err
		})
		w.hurry()
	})
	l.during("take a store out", func() {
		info, err := w.info(first[0])
		require.NoError(t, err)
		w.until("delete the store", func() error {
			return w.pd(http.MethodDelete, "/store/"+strconv.FormatUint(info.Store.ID, 10), nil, nil)
		})
		w.until("it is a tombstone", func() error {
			info, err := w.info(first[0])
			if err == nil && info.Store.State != "Tombstone" {
				return fmt.Errorf("%s with %d regions", info.Store.State, info.Status.Regions)
			}
			return err
		})
		w.stop(first[0], syscall.SIGTERM)
	})
	rest := []string{storeName(1), storeName(2), storeName(3)}
	l.during("restart all stores", func() {
		for _, s := range rest {
			w.stop(s, syscall.SIGTERM)
		}
		for _, s := range rest {
			w.again(s)
		}
	})
	l.during("kill all stores", func() {
		for _, s := range rest {
			w.stop(s, syscall.SIGKILL)
		}
		for _, s := range rest {
			w.again(s)
		}
	})
	l.end()
	w.stop("tidb", syscall.SIGKILL) // it writes of its own
	w.replicated(3, rest...)
	w.until("all replicas are equal", func() error { return w.replicasAgree(3, rest...) })
	w.again(first[0])
	select {
	case <-w.running[first[0]].ended:
	case <-time.After(timeout):
		require.Fail(t, "a tombstone runs")
	}
}
