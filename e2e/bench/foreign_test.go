package bench

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// received looks for words in all that operators get from the API server.
type received struct {
	words []string

	mu    sync.Mutex
	found map[string]map[string]bool // operators by word
}

// reach is the way in, see rig.Options.
func (r *received) reach(operator string, config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apirequest.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				response.Body = &searched{ReadCloser: response.Body, in: r, operator: operator}
			}
			return response, err
		})
	})
}

func (r *received) note(word, operator string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found[word] == nil {
		r.found[word] = map[string]bool{}
	}
	r.found[word][operator] = true
}

func (r *received) by(word string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []string{}
	for operator := range r.found[word] {
		out = append(out, operator)
	}
	return out
}

// searched is a body, with the end of what was read before.
type searched struct {
	io.ReadCloser
	in       *received
	operator string
	tail     []byte
}

// Read implements io.Reader.
func (s *searched) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	text := slices.Concat(s.tail, into[:n])
	for _, word := range s.in.words {
		if bytes.Contains(text, []byte(word)) {
			s.in.note(word, s.operator)
		}
	}
	s.tail = bytes.Clone(text[max(len(text)-64, 0):]) // a word may be cut in two
	return n, err
}

// What operators do not get, they cannot hold: memory must not follow what others keep in the
// cluster. A cluster with certificates of its own makes them read Secrets too.
func TestForeignObjectsReachNoOperator(t *testing.T) {
	seen := &received{words: []string{foreignName, "c0-tikv-0"}, found: map[string]map[string]bool{}}
	c := Case{Clusters: 1, TLS: true, Foreign: 2 * foreignNamespaces}
	r := rig.New(t, plane, rig.Options{ClusterWide: true, ReasonDeadline: rig.Timeout, Reach: seen.reach})
	require.NoError(t, fillForeign(t.Context(), plane, r.Namespace(), c.Foreign))
	r.Start(rig.Operators()...)
	require.NoError(t, bringUp(t.Context(), r.Rig, c))

	assert.Subset(t, seen.by("c0-tikv-0"), []string{"instance", "pdgroup", "tikvgroup"}, "what is looked through is what they get")
	assert.Empty(t, seen.by(foreignName), "operators that got a foreign ConfigMap, Secret or Pod")
}

func TestAProcessThatHoldsForeignObjectsIsNamed(t *testing.T) {
	of := func(pd, tikv int64) Processes {
		return Processes{Clusters: 4, Took: 8 * time.Second, Start: 4 * time.Second, Memory: map[string]int64{"pdgroup": pd << 20, "tikvgroup": tikv << 20}}
	}
	found := ForeignMemory(of(20, 21), of(27, 170), 1000)
	require.ErrorContains(t, found.Check(), "memory of tikvgroup, MiB: 21.0 without and 170.0 with 1000 foreign ConfigMaps, Secrets and Pods")
	assert.NotContains(t, found.Check().Error(), "pdgroup")
	require.NoError(t, ForeignMemory(of(20, 21), of(60, 21), 1000).Check(), "less than half of the 98 MiB that a kind takes")
	require.NoError(t, ForeignMemory(of(20, 21), of(27, 21), 10).Check(), "a few objects are lost among what differs anyhow")

	result := func(writes, reads int, took time.Duration) Result {
		return Result{Clusters: 1, Took: took, Start: Cost{Writes: writes, Reads: reads}}
	}
	require.NoError(t, ForeignCounts(result(100, 100, time.Second), result(105, 105, time.Minute), 10).Check())
	require.ErrorContains(t, ForeignCounts(result(100, 100, time.Second), result(100, 130, time.Second), 10).Check(), "reads: 100.0 without and 130.0 with 10")
}

func TestForeignRunsStandOnThePage(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "performance.md")
	require.NoError(t, os.WriteFile(page, []byte("<!-- written by make bench: begin -->\n<!-- written by make bench: end -->\n"), 0o600))
	run := func(reads float64) Run {
		return Run{Commit: "one", Machine: "m", Foreign: []Foreign{{Clusters: 4, Each: 5000, How: v1alpha1.OperatorAll, Found: []Comparison{{What: "reads", Base: 90, Now: reads}}}}}
	}
	require.NoError(t, Record(docs, run(80)))
	require.NoError(t, Record(docs, run(91)))
	text, err := os.ReadFile(filepath.Clean(page))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| one | 4 | 5000 | all | reads | 90.0 | 91.0 |\n")
	assert.NotContains(t, string(text), "80.0")
}
