package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/deploy/docs"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// mistakes is a page with commands that are wrong, each with what is said about it.
const mistakes = "`kubectl get tidbcluster NAME` # \"basic-tikv-0\" not found\n" + `
~~~sh
kubectl get pdgroup basic-pd -o jsonpath='{.status.clusterId}' # clusterId is not found
kubectl get instances -o custom-columns=NAME:.metadata.name,STATE:.status.member.stat # it prints nothing as STATE
kubectl get pvc -l groups.tidb.dev/group=basic-tikvs # it prints nothing
kubectl delete pvc -l groups.tidb.dev/group=basic-tikvs # it prints nothing
kubectl patch tidbcluster basic --type=merge -p '{"spec":{"suspend":true}}' # unknown field "spec.suspend"
kubectl patch tidbcluster basic --type=merge -p '{"spec":{"version":""}}' # spec.version
kubectl annotate instance basic-tikv-9 groups.tidb.dev/replace= # not found
kubectl wait --for=condition=Redy tidbcluster/basic --timeout=1h # timed out
kubectl scale pdgroup basic-pd --replicas=9 # spec.replicas
kubectl apply -f deploy/samples/basics.yaml # does not exist
id=$(kubectl get pdgroup basic-pd -o jsonpath='{.status.clusterID}')
kubectl get pdgroup basic-pd-$id # "basic-pd-1" not found
~~~
`

// What a page shows can be typed: kubectl and the API server do it, and what asks for
// something is answered.
func TestTheCommandsOfThePagesCanBeTyped(t *testing.T) {
	_ = os.Getenv("PAGES") // with other pages, Go does not take an old result for this one
	pages, err := docs.Pages("../..")
	require.NoError(t, err)
	c, top := newClient(t), copied(t, pages)
	install(t, c, top, pages)
	var mutex sync.Mutex
	ran, left := map[string]int{}, map[string]int{}
	t.Run("pages", func(t *testing.T) {
		for name, page := range pages {
			if strings.HasPrefix(name, "docs/decisions/") || name == "CHANGELOG.md" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, r := range run(t, c, top, page) {
					if what := wrong(r); what != "" {
						t.Errorf("%s:%d: kubectl %q, run as %q: %s", name, r.Line, r.Args, r.Ran, what)
					}
					count := ran
					if r.Ran == nil {
						count = left
					}
					mutex.Lock()
					count[verb(r.Args)]++
					if r.Ran == nil {
						count[strings.Join(r.Args, " ")]++
					}
					mutex.Unlock()
				}
			})
		}
		t.Run("of mistakes", func(t *testing.T) {
			t.Parallel()
			for _, r := range run(t, c, top, strings.ReplaceAll(mistakes, "~~~", "```")) {
				_, says, _ := strings.Cut(strings.Split(mistakes, "\n")[r.Line-1], " # ")
				if got := wrong(r); says == "" {
					assert.Empty(t, got, r.Args)
				} else {
					assert.Contains(t, got, says, r.Args)
				}
			}
		})
	})
	t.Logf("run: %v", ran)
	for what, why := range notRun() {
		assert.Positive(t, left[what], "kubectl %s %s, but no page has it", what, why)
	}
	for what, why := range mentions() {
		assert.Positive(t, left[what], "kubectl %s is %s, but no page has it", what, why)
	}
}

// run types the commands of a page, first those of its blocks, in a namespace of its own, and
// returns what came of them.
func run(t *testing.T, c client.Client, top, page string) []result {
	t.Helper()
	blocks, err := docs.Commands(t.Context(), page)
	require.NoError(t, err)
	within, err := docs.Shell{}.RunInline(t.Context(), page)
	require.NoError(t, err)
	told := slices.Concat(blocks, within)
	if !slices.ContainsFunc(told, func(told docs.Command) bool { return isRun(told.Args) }) {
		var out []result
		for _, command := range told {
			out = append(out, result{Line: command.Line, Args: command.Args})
		}
		return out
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(top, "deploy"), filepath.Join(dir, "deploy")))
	for _, command := range told {
		for _, a := range command.Args {
			if file, found := strings.CutPrefix(a, "--from-file="); found {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file[strings.LastIndex(file, "=")+1:]), []byte("x"), 0o600))
			}
		}
	}
	program, err := os.Executable()
	require.NoError(t, err)
	results := filepath.Join(t.TempDir(), "results")
	shell := docs.Shell{Kubectl: program, Dir: dir, Env: []string{
		"HOME=" + top, "KUBE_EDITOR=/bin/true",
		resultsFile + "=" + results, kubectlPath + "=" + plane.KubectlPath, kubeconfig + "=" + namespaceOf(t, c, page),
	}}
	_, err = shell.RunBlocks(t.Context(), page)
	require.NoError(t, err)
	_, err = shell.RunInline(t.Context(), page)
	require.NoError(t, err)
	out := read(t, results)
	require.Len(t, out, len(told), "a command ended before it had written down what came of it, or was not reached")
	return out
}

// namespaceOf makes a namespace for a page, with what it presumes, and returns the path of
// a kubeconfig that leads there.
func namespaceOf(t *testing.T, c client.Client, page string) string {
	t.Helper()
	in := controlplane.CreateNamespace(t, c)
	presume(t, c, in, page)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(plane.Kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err = plane.Kubectl(t.Context(), "--kubeconfig", path, "config", "set-context", "--current", "--namespace", in)
	require.NoError(t, err)
	return path
}

// read returns what typed has written down.
func read(t *testing.T, path string) []result {
	t.Helper()
	file, err := os.Open(path) //nolint:gosec // written by typed
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var out []result
	for in := json.NewDecoder(file); in.More(); {
		var r result
		require.NoError(t, in.Decode(&r))
		out = append(out, r)
	}
	return out
}

func TestTheResultOfACommandIsChecked(t *testing.T) {
	columns := []string{"get", "pods", "-o", "custom-columns=NAME:.metadata.name,POD OF:.a"}
	for says, r := range map[string]result{
		"it ends with -1: ":                                            {Ran: []string{"get", "pods", "-w"}, Code: -1},
		"it ends with 1: not found":                                    {Ran: []string{"get", "pods"}, Code: 1, Stdout: "a", Stderr: "not found"},
		"it ends with 0: unknown field":                                {Ran: []string{"patch"}, Stdout: "a", Stderr: "unknown field"},
		"it prints nothing: none":                                      {Ran: []string{"describe"}, Args: []string{"describe"}, Stderr: "none"},
		"it prints nothing as POD OF:\nNAME   POD OF\na      <none>\n": {Ran: columns, Args: columns, Stdout: "NAME   POD OF\na      <none>\n"},
	} {
		assert.Equal(t, says, wrong(r))
	}
	for _, r := range []result{
		{Args: []string{"logs"}, Code: 1},
		{Ran: []string{"wait", "--for=delete"}, Args: []string{"wait"}},
		{Ran: columns, Args: columns, Stdout: "NAME   POD OF\na      <none>\nb      x\n"},
	} {
		assert.Empty(t, wrong(r), r.Args)
	}
}

// wrong says what is wrong with what came of a command; nothing if nothing is.
func wrong(r result) string {
	line := strings.Join(r.Ran, " ")
	switch {
	case r.Ran == nil:
		return ""
	case r.Code != 0, strings.Contains(r.Stderr, "unknown field"):
		return fmt.Sprintf("it ends with %d: %.1000s", r.Code, r.Stderr) // kubectl may show the whole object
	case strings.HasPrefix(r.Stdout, "No resources found"), strings.TrimSpace(r.Stdout) == "" && verb(r.Args) != "edit" && !strings.HasPrefix(line, "wait --for=delete"):
		return "it prints nothing: " + r.Stderr
	}
	for _, a := range r.Args {
		if columns, found := strings.CutPrefix(a, "custom-columns="); found {
			if empty := emptyColumn(columns, r.Stdout); empty != "" {
				return "it prints nothing as " + empty + ":\n" + r.Stdout
			}
		}
	}
	return ""
}

// emptyColumn names a column of a table that has no value in any row.
func emptyColumn(columns, table string) string {
	header, rows, _ := strings.Cut(table, "\n")
	for _, m := range regexp.MustCompile(`(?:^|,)([A-Z ]+):`).FindAllStringSubmatch(columns, -1) {
		at := strings.Index(header, m[1])
		some := false
		for row := range strings.Lines(rows) {
			some = some || at >= 0 && at < len(row) && !strings.HasPrefix(row[at:], "<none>")
		}
		if !some {
			return m[1]
		}
	}
	return ""
}
