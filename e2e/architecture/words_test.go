package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// retired are words of our own for which the field has others, with what to say instead.
func retired() map[string]string {
	return map[string]string{
		"adrift":           "ready, but not Up",
		"astray":           "unfinished",
		"bury":             "replace",
		"companion":        "member of the batch",
		"condemned":        "permitted to stop",
		"crowd":            "other leaderless stores",
		"footing":          "state of the pod",
		"forgone":          "withdrawn",
		"gift":             "update of the configuration",
		"has the say":      "owns, or decides",
		"heir":             "recreated Instance",
		"lame":             "unhealthy",
		"made up for":      "replaced",
		"newcomer":         "new member",
		"on its way out":   "leaving",
		"on their way out": "leaving",
		"readmit":          "restore leaders",
		"resident":         "member, or InstanceDiff",
		"shun":             "keep leaders off",
		"spare":            "not serving, or surplus",
		"survey":           "compare",
		"twin":             "duplicate",
	}
}

// plain are the packages of shared in which no retired word is left. There are more to
// come.
func plain() []string {
	out := []string{"lease", "leaseclient", "testkit/componenttest", "testkit/instancetest"}
	for _, l := range layers() {
		out = append(out, l.name)
	}
	return out
}

// A word of our own for something that has a name makes the reader learn it twice.
func TestRetiredWordsStayAway(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	var words []string
	for word := range retired() {
		words = append(words, word)
	}
	slices.Sort(words)
	// In identifiers too: a word begins with a capital there, or ends before one.
	found := regexp.MustCompile(`(?:^|[^A-Za-z])(?i:(` + strings.Join(words, "|") + `))(?:s\b|\b|[A-Z_])`)
	for _, dir := range plain() {
		files, err := filepath.Glob(filepath.Join(root, "shared", dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "shared/%s", dir)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for n, line := range strings.Split(string(text), "\n") {
				if m := found.FindStringSubmatch(line); m != nil {
					word := strings.ToLower(m[1])
					assert.Fail(t, "retired word", "shared/%s/%s:%d says %q: say %q: %s", dir, filepath.Base(file), n+1, word, retired()[word], strings.TrimSpace(line))
				}
			}
		}
	}
}
