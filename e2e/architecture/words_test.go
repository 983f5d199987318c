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
		"a person":         "a user",
		"adrift":           "ready, but not Up",
		"anew":             "again, or recreated",
		"astray":           "unfinished",
		"bury":             "replace",
		"companion":        "member of the batch",
		"condemned":        "permitted to stop",
		"crowd":            "other leaderless stores",
		"footing":          "state of the pod",
		"for ever":         "forever",
		"forgone":          "withdrawn",
		"founder":          "initial member",
		"founding":         "bootstrap",
		"founds":           "bootstraps, or makes",
		"gift":             "update of the configuration",
		"has the say":      "owns, or decides",
		"heir":             "recreated Instance",
		"lame":             "unhealthy",
		"let go":           "removed, or released",
		"made up for":      "replaced",
		"mend":             "fix",
		"mended":           "fixed",
		"mending":          "fixing",
		"newcomer":         "new member",
		"on its way out":   "leaving",
		"on their way out": "leaving",
		"parting":          "leaving",
		"readmit":          "restore leaders",
		"resident":         "member, or InstanceDiff",
		"shun":             "keep leaders off",
		"spare":            "not serving, or surplus",
		"survey":           "compare",
		"twin":             "duplicate",
		"yet to":           "not yet",
	}
}

// retiredFromCode are words that still are in tests, and in no other Go file.
func retiredFromCode() map[string]string {
	return map[string]string{
		"nobody":   "none, or nothing",
		"somebody": "another owner, or a user",
		"victim":   "the one that stops or leaves",
		"whoever":  "whatever",
	}
}

// texts are the files in which no retired word is left, and the words that are retired there.
// Decisions and the changelog are history. What is generated, such as deploy/crds, repeats
// what it is generated from.
func texts() []text {
	code := maps.Clone(retired())
	maps.Copy(code, retiredFromCode())
	return []text{
		{"shared", "_test.go", retired()},
		{"operators", "_test.go", retired()},
		{"deploy", "_test.go", retired()},
		{"apis", ".go", code},
		{"shared", codeOnly, code},
		{"operators", codeOnly, code},
		{"deploy", codeOnly, code},
		{"deploy/crds", ".yaml", code},
		{"docs", ".md", retired()},
		{"e2e", ".go", retired()},
		{"e2e/scenarios", ".yaml", retired()},
	}
}

// text is the files of a folder whose names end in the same way.
type text struct {
	folder, suffix string
	words          map[string]string
}

// codeOnly is the suffix of Go files that are not tests.
const codeOnly = "code"

// holds reports whether a file is one of the text's.
func (t text) holds(path string) bool {
	switch {
	case strings.HasPrefix(path, "docs/decisions/"), path == "e2e/architecture/words_test.go":
		return false
	case t.suffix == codeOnly:
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	}
	return strings.HasSuffix(path, t.suffix)
}

// names are those of scenarios, mutants and files, and of others' code: they are not prose.
var names = regexp.MustCompile(`[A-Za-z0-9]+(-[A-Za-z0-9]+)+|http\.NoBody`)

// A word of our own for something that has a name makes the reader learn it twice.
func TestRetiredWordsStayAway(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	for _, text := range texts() {
		found := usesOf(slices.Sorted(maps.Keys(text.words)))
		files := 0
		require.NoError(t, filepath.WalkDir(filepath.Join(root, text.folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || !text.holds(filepath.ToSlash(name)) {
				return err
			}
			files++
			content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			for n, line := range strings.Split(string(content), "\n") {
				for _, word := range found(names.ReplaceAllString(line, "-")) {
					assert.Fail(t, "retired word", "%s:%d says %q: say %q: %s", name, n+1, word, text.words[word], strings.TrimSpace(line))
				}
			}
			return err
		}))
		assert.Positive(t, files, "%s: %s", text.folder, text.suffix)
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
