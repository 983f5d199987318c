//go:build e2e

package localcluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/localcluster"
)

// testDir keeps the test apart from a demo's cluster; both cannot run at once,
// and Up says so.
const testDir = "/var/lib/tidb-groups-local-test"

// childEnv makes this test binary run Up and nothing else, so that it can be killed.
const childEnv = "LOCALCLUSTER_TEST_UP"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	c, err := localcluster.New(localcluster.Options{Dir: testDir, Out: os.Stdout})
	if err == nil {
		err = c.Up(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func open(t *testing.T) *localcluster.Cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	c, err := localcluster.New(localcluster.Options{Dir: testDir, Out: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() {
		// The test's own context is over by now.
		require.NoError(t, c.Down(context.Background()))
		assertNothingIsLeft(t)
	})
	return c
}

// kubectl runs kubectl and returns what it prints.
func kubectl(t *testing.T, c *localcluster.Cluster, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...).CombinedOutput()
	require.NoError(t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	return strings.TrimSpace(string(body))
}

func TestAClusterServesPodsAndSurvivesTheLossOfANode(t *testing.T) {
	c := open(t)
	require.NoError(t, c.Up(t.Context()))
	kubectl(t, c, "apply", "-f", "testdata/web.yaml")
	kubectl(t, c, "wait", "--for=condition=Ready", "pod/web-1", "pod/web-2", "--timeout=90s")
	kubectl(t, c, "wait", "--for=jsonpath={.status.phase}=Running", "pod/web-3", "--timeout=90s")

	for i := 1; i <= 3; i++ {
		assert.Equal(t, fmt.Sprintf("node-%d", i), kubectl(t, c, "get", "pod", fmt.Sprintf("web-%d", i), "-o", "jsonpath={.spec.nodeName}"))
		url := fmt.Sprintf("http://web-%d.web-peer.default.svc:8080/", i)
		assert.Equal(t, fmt.Sprintf("web-%d", i), kubectl(t, c, "exec", "web-1", "--", "wget", "-qO-", url),
			"the name of a pod resolves, even of web-3 that is not ready, and it answers with what it wrote to its claim")
	}
	service := kubectl(t, c, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	for range 10 {
		assert.Contains(t, []string{"web-1", "web-2"}, kubectl(t, c, "exec", "web-1", "--", "wget", "-qO-", "http://web/"))
		assert.Contains(t, []string{"web-1", "web-2"}, get(t, "http://"+service+"/"), "the host reaches Services")
	}
	address := kubectl(t, c, "get", "pod", "web-3", "-o", "jsonpath={.status.podIP}")
	assert.Equal(t, "web-3", get(t, "http://"+address+":8080/"), "the host reaches pods")
	kubectl(t, c, "patch", "pvc", "data-web-1", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	kubectl(t, c, "wait", "--for=jsonpath={.status.capacity.storage}=2Gi", "pvc/data-web-1", "--timeout=30s")

	lost := time.Now()
	require.NoError(t, c.StopNode(t.Context(), "node-3"))
	_, err := net.DialTimeout("tcp", net.JoinHostPort(address, "8080"), time.Second)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout, "a lost machine does not answer, not even with a refusal")
	kubectl(t, c, "wait", "--for=condition=Ready=Unknown", "node/node-3", "--timeout=60s")
	t.Logf("the loss was noticed after %s", time.Since(lost).Round(time.Second))
	require.NoError(t, c.StartNode(t.Context(), "node-3"))
	kubectl(t, c, "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/web-3", "--timeout=90s")

	again := time.Now()
	require.NoError(t, c.Up(t.Context()))
	t.Logf("up on a running cluster took %s", time.Since(again))
}

// Every line that up prints is a moment to be killed at: no matter which it is,
// down leaves nothing, and up after it works.
func TestDownCleansUpAfterUpWasKilledAtAnyStep(t *testing.T) {
	c := open(t)
	for step := 1; ; step++ {
		finished := endsBeforeKill(t, step)
		if step%4 == 0 { // every time would be slow, and the crash is the same
			require.NoError(t, c.Up(t.Context()), "up repairs what was left at step %d", step)
		}
		require.NoError(t, c.Down(t.Context()), "down after step %d", step)
		assertNothingIsLeft(t)
		if finished {
			return
		}
	}
}

// endsBeforeKill kills up once it has printed that many lines; it returns true if
// up came to its end before.
func endsBeforeKill(t *testing.T, lines int) (finished bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	for seen := 0; seen < lines && scanner.Scan(); seen++ {
		if strings.Contains(scanner.Text(), "cluster is up") {
			require.NoError(t, cmd.Wait())
			return true
		}
	}
	require.NoError(t, scanner.Err())
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed")
	return false
}

func assertNothingIsLeft(t *testing.T) {
	t.Helper()
	assert.NoDirExists(t, testDir)
	assert.NoFileExists(t, testDir+".lock")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), testDir)
	_, err = net.InterfaceByName("tgl0")
	require.Error(t, err, "the bridge is gone")
	links, err := net.Interfaces()
	require.NoError(t, err)
	for _, l := range links {
		assert.NotRegexp(t, "^veth", l.Name)
	}
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, f := range []string{"cmdline", "environ"} {
			content, err := os.ReadFile(filepath.Join("/proc", e.Name(), f))
			if err != nil {
				continue // it ended meanwhile
			}
			assert.NotContains(t, string(content), testDir+"/", "process %d", pid)
			assert.NotContains(t, string(content), testDir+"|", "process %d", pid)
		}
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/tidb-groups-local")
	require.NoError(t, err)
	assert.Empty(t, groups)
}
