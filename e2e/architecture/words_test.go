package architecture

import (
	"io/fs"
	"maps"
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
		"founder":          "initial member",
		"founding":         "bootstrap",
		"founds":           "bootstraps, or makes",
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

// modules are those in which no retired word is left.
func modules() []string { return []string{"apis", "shared", "operators", "deploy"} }

// A word of our own for something that has a name makes the reader learn it twice.
func TestRetiredWordsStayAway(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	found := usesOf(slices.Sorted(maps.Keys(retired())))
	for _, module := range modules() {
		files := 0
		require.NoError(t, filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			files++
			text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			for n, line := range strings.Split(string(text), "\n") {
				for _, word := range found(line) {
					assert.Fail(t, "retired word", "%s:%d says %q: say %q: %s", path, n+1, word, retired()[word], strings.TrimSpace(line))
				}
			}
			return err
		}))
		assert.Positive(t, files, module)
	}
}

// usesOf returns what finds words in a line, in identifiers too: a word begins with a
// capital there, or ends before one.
func usesOf(words []string) func(line string) []string {
	alone := regexp.MustCompile(`(?:^|[^A-Za-z])(?i:(` + strings.Join(words, "|") + `))(?:s\b|\b|[A-Z_])`)
	var capitals []string
	for _, word := range words {
		capitals = append(capitals, strings.ToUpper(word[:1])+word[1:])
	}
	within := regexp.MustCompile(`[a-z](` + strings.Join(capitals, "|") + `)(?:s?\b|s?[A-Z_])`)
	return func(line string) []string {
		var out []string
		for _, pattern := range []*regexp.Regexp{alone, within} {
			if m := pattern.FindStringSubmatch(line); m != nil {
				out = append(out, strings.ToLower(m[1]))
			}
		}
		return out
	}
}

func TestRetiredWordsAreFoundInTextsAndIdentifiers(t *testing.T) {
	found := usesOf([]string{"founder", "heir", "made up for"})
	for line, want := range map[string][]string{
		"// The heir of a member.":    {"heir"},
		"heirs, others := 0, 0":       {"heir"},
		"func TestAnHeirIsMade() {":   {"heir"},
		"g.isHeir(i)":                 {"heir"},
		"func isFounder() bool {":     {"founder"},
		"// Who the founders found.":  {"founder"},
		"found := cloudfoundry":       nil,
		"// It is made up for.":       {"made up for"},
		"// Their own, theirs alike.": nil,
		"heirloom":                    nil,
	} {
		assert.Equal(t, want, found(line), line)
	}
}
