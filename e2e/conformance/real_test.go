package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// realEnv asks for the tests against a real PD too, with the value "real". It is built
// when it is not in the cache, which takes a minute.
const realEnv = "CONFORMANCE"

// timeout is how long a real PD may take on a machine that has other things to do.
const timeout = time.Minute

// realPDs bounds how many real PDs run at a time, of three processes each.
var realPDs = make(chan struct{}, 4)

// againstReal runs a test against a real PD.
func againstReal(t *testing.T, test func(t *testing.T, p *scenarioRun)) {
	t.Helper()
	if os.Getenv(realEnv) != "real" {
		t.Skip("a real PD is asked for by " + realEnv + "=real, as make conformance sets it")
	}
	t.Parallel()
	select {
	case realPDs <- struct{}{}:
	case <-t.Context().Done():
		return
	}
	defer func() { <-realPDs }()
	b := newReal(t)
	defer b.Close()
	test(t, newScenarioRun(b, nil))
}

// realPD is three processes of the built PD, and stores that have no data.
type realPD struct {
	speaker
	dir, program string
	members      map[string]*realMember
	fleet        *fleet
}

// realMember is a member, and its process if it runs.
type realMember struct {
	client, peer string // URLs
	how          string // flag that says how it begins: with whom, or whom to join
	process      *exec.Cmd
	ended        chan struct{}
}

// realConfig is what differs from PD's defaults: the labels that the recorded cluster
// had, and how soon the leader is moved for the sake of priorities.
const realConfig = `LeaderPriorityCheckInterval = "200ms"
[replication]
location-labels = ["zone", "host"]
`

func newReal(t *testing.T) *realPD {
	t.Helper()
	program, err := binaries.Path(t.Context(), "pd-server")
	require.NoError(t, err)
	b := &realPD{dir: t.TempDir(), program: program, members: map[string]*realMember{}, fleet: newFleet()}
	b.speaker = speaker{find: b.find, conns: map[string]*grpc.ClientConn{}}
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "pd.toml"), []byte(realConfig), 0o600))
	var cluster []string
	for _, name := range memberNames {
		m := &realMember{client: "http://" + loopback.Address(t), peer: "http://" + loopback.Address(t)}
		b.members[name] = m
		cluster = append(cluster, name+"="+m.peer)
	}
	for _, name := range memberNames {
		b.members[name].how = "--initial-cluster=" + strings.Join(cluster, ",")
		b.start(t, name)
	}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		for _, name := range memberNames {
			if body, err := b.ask(ctx, name); err != nil || len(body.Members) < len(memberNames) || len(body.Leader.ClientURLs) == 0 {
				return false
			}
		}
		return true
	}, timeout, 100*time.Millisecond, "three members bootstrap a cluster")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, name := range memberNames {
			t.Logf("end of the log of %s:\n%s\n%s", name, tail(b.log(name), 20), tail(b.log(name)+".out", 10))
		}
	})
	return b
}

func (b *realPD) log(name string) string { return filepath.Join(b.dir, name+".log") }

// tail is the last lines of a file.
func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// start starts a member and does not wait until it answers.
func (b *realPD) start(t *testing.T, name string) {
	t.Helper()
	m := b.members[name]
	out, err := os.OpenFile(b.log(name)+".out", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	// What is still running when the test ends is killed.
	m.process = exec.CommandContext(t.Context(), b.program, "--name="+name, "--data-dir="+filepath.Join(b.dir, name),
		"--client-urls="+m.client, "--peer-urls="+m.peer, "--config="+filepath.Join(b.dir, "pd.toml"), "--log-file="+b.log(name), m.how)
	m.process.Dir, m.process.Stdout, m.process.Stderr = b.dir, out, out
	m.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, m.process.Start())
	m.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait() // how it ended shows in what it no longer does
		_ = out.Close()
		close(ended)
	}(m.process, m.ended)
}

// isRunning says whether a member has a process.
func (m *realMember) isRunning() bool {
	if m.process == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// end kills a member, if it runs, and waits until it is gone.
func (m *realMember) end() error {
	if !m.isRunning() {
		return nil
	}
	if err := m.process.Process.Kill(); err != nil && m.isRunning() {
		return fmt.Errorf("kill PD: %w", err)
	}
	select {
	case <-m.ended:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("process %d does not end", m.process.Process.Pid)
	}
}

// find asks the members for the leader.
func (b *realPD) find(ctx context.Context) (address string, cluster uint64, ok bool) {
	for _, name := range memberNames {
		if !b.members[name].isRunning() {
			continue
		}
		body, err := b.ask(ctx, name)
		if err == nil && len(body.Leader.ClientURLs) > 0 {
			return strings.TrimPrefix(body.Leader.ClientURLs[0], "http://"), body.Header.ClusterID, true
		}
	}
	return "", 0, false
}

// realMembers is what of PD's answer to /members a store needs.
type realMembers struct {
	Header struct {
		ClusterID uint64 `json:"cluster_id"`
	} `json:"header"`
	Members []struct {
		Name string `json:"name"`
	} `json:"members"`
	Leader struct {
		ClientURLs []string `json:"client_urls"`
	} `json:"leader"`
}

func (b *realPD) ask(ctx context.Context, name string) (realMembers, error) {
	var body realMembers
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL(name)+"/pd/api/v1/members", http.NoBody)
	if err != nil {
		return body, fmt.Errorf("ask %s: %w", name, err)
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return body, fmt.Errorf("ask %s: %w", name, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return body, fmt.Errorf("ask %s: %s", name, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return body, fmt.Errorf("read members of %s: %w", name, err)
	}
	return body, nil
}

func (b *realPD) URL(name string) string { return b.members[name].client }

func (b *realPD) Kill(t *testing.T, name string) {
	t.Helper()
	require.True(t, b.members[name].isRunning(), "%s does not run", name)
	require.NoError(t, b.members[name].end())
}

func (b *realPD) Revive(t *testing.T, name string) {
	t.Helper()
	b.start(t, name)
}

func (b *realPD) Rejoin(t *testing.T, name string) {
	t.Helper()
	m := b.members[name]
	require.NoError(t, m.end())
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, name)))
	// PD takes one URL, and no list of them.
	for _, other := range memberNames {
		if other != name && b.members[other].isRunning() {
			m.how = "--join=" + b.URL(other)
			break
		}
	}
	// It ends when etcd does not take it in, which is for 5 s after each change.
	require.Eventually(t, func() bool {
		if !m.isRunning() {
			b.start(t, name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		body, err := b.ask(ctx, name)
		if err != nil {
			return false
		}
		for _, listed := range body.Members {
			if listed.Name == name {
				return true
			}
		}
		return false
	}, timeout, 200*time.Millisecond, "member %s is not taken in", name)
}

func (b *realPD) AddUnstarted(t *testing.T, peerURL string) {
	t.Helper()
	addUnstarted(t, b.URL("pd-1"), peerURL)
}

func (b *realPD) Bootstrap(t *testing.T, s model.StoreMeta) {
	t.Helper()
	b.leader(t, func(ctx context.Context, m member) error { return b.fleet.found(ctx, m, s.ID) })
	b.speaker.Bootstrap(t, s)
	b.leader(t, func(ctx context.Context, m member) error { return b.fleet.beat(ctx, m, s.ID) })
}

func (b *realPD) Heartbeat(t *testing.T, store uint64) {
	t.Helper()
	b.leader(t, func(ctx context.Context, m member) error {
		if err := m.beat(ctx, store, int64(b.fleet.count(store))*regionSize); err != nil {
			return err
		}
		return b.fleet.beat(ctx, m, store)
	})
}

func (b *realPD) Close() {
	for _, name := range memberNames {
		_ = b.members[name].end() // the end of the test kills it as well
	}
	b.fleet.close()
	b.close()
}
