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
		"nobody":           "none, or nothing",
		"on its way out":   "leaving",
		"on their way out": "leaving",
		"parting":          "leaving",
		"patience":         "timeout, delay, period, or limit of failures",
		"readmit":          "restore leaders",
		"resident":         "member, or InstanceDiff",
		"shun":             "keep leaders off",
		"silence":          "outage, or no answer",
		"silent":           "unreachable, or does not answer",
		"somebody":         "another owner, or a user",
		"spare":            "not serving, or surplus",
		"survey":           "compare",
		"twin":             "duplicate",
		"victim":           "the one that stops or leaves",
		"whoever":          "whatever, or who",
		"yet to":           "not yet",
	}
}

// texts are the files in which no retired word is left. Decisions and the changelog are
// history. What is generated, such as a CRD, repeats what it is generated from.
func texts() []text {
	return []text{
		{"apis", ".go"},
		{"shared", ".go"},
		{"operators", ".go"},
		{"deploy", ".go"},
		{"deploy", ".yaml"},
		{"deploy", ".lua"},
		{"docs", ".md"},
		{"e2e", ".go"},
		{"e2e/scenarios", ".yaml"},
		{"e2e/mutants/bugs", ".yaml"},
	}
}

// text is the files of a folder whose names end in the same way.
type text struct{ folder, suffix string }

// holds reports whether a file is one of the text's.
func (t text) holds(path string) bool {
	return strings.HasSuffix(path, t.suffix) && !strings.HasPrefix(path, "docs/decisions/") && path != "e2e/architecture/words_test.go"
}

// names are those of scenarios, mutants and files, and words of others: they are not our prose.
var names = regexp.MustCompile(`[A-Za-z0-9]+(-[A-Za-z0-9]+)+|http\.NoBody|No victims found|Silence(Usage|Errors)|process_resident_memory_bytes`)

// comment is a line that is nothing but one, with its text.
var comment = regexp.MustCompile(`^\s*(?://|#|--)\s*(.*)$`)

// A word of our own for something that has a name makes the reader learn it twice.
func TestRetiredWordsStayAway(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	words := retired()
	found := usesOf(slices.Sorted(maps.Keys(words)))
	for _, text := range texts() {
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
			last := ""
			for n, line := range strings.Split(string(content), "\n") {
				line = names.ReplaceAllString(line, "-")
				for _, word := range append(found(line), usesAcrossBreak(found, last, line)...) {
					assert.Fail(t, "retired word", "%s:%d says %q: say %q: %s", name, n+1, word, words[word], strings.TrimSpace(line))
				}
				last = line
			}
			return err
		}))
		assert.Positive(t, files, "%s: %s", text.folder, text.suffix)
	}
}

// usesOf returns what finds words in a line, in identifiers too: a word begins with a
// capital there, or ends before one, and several are written as one.
func usesOf(words []string) func(line string) []string {
	said := map[string]string{}
	var within []string
	for _, word := range words {
		said[strings.ReplaceAll(word, " ", "")] = word
		var capitals strings.Builder
		for part := range strings.SplitSeq(word, " ") {
			capitals.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		within = append(within, capitals.String())
	}
	patterns := []*regexp.Regexp{
		regexp.MustCompile(`(?:^|[^A-Za-z])(?i:(` + strings.Join(words, "|") + `))(?:s\b|\b|s?[A-Z_])`),
		regexp.MustCompile(`[A-Za-z](` + strings.Join(within, "|") + `)(?:s?\b|s?[A-Z_])`),
	}
	return func(line string) []string {
		var out []string
		for _, pattern := range patterns {
			for _, m := range pattern.FindAllStringSubmatch(line, -1) {
				out = append(out, said[strings.ToLower(strings.ReplaceAll(m[1], " ", ""))])
			}
		}
		return out
	}
}

// usesAcrossBreak returns what found finds in two lines of a comment only when they are joined.
func usesAcrossBreak(found func(line string) []string, line, next string) []string {
	first, second := comment.FindStringSubmatch(line), comment.FindStringSubmatch(next)
	if first == nil || second == nil {
		return nil
	}
	alone := append(found(first[1]), found(second[1])...)
	return slices.DeleteFunc(found(first[1]+" "+second[1]), func(word string) bool { return slices.Contains(alone, word) })
}

func TestRetiredWordsAreFoundAcrossTheLinesOfAComment(t *testing.T) {
	found := usesOf([]string{"heir", "let go"})
	for name, c := range map[string]struct {
		line, next string
		want       []string
	}{
		"of Go":              {"\t// A member is let", "\t// go when it has left.", []string{"let go"}},
		"of YAML":            {"  # A member is let", "  # go when it has left.", []string{"let go"}},
		"a word of one line": {"// The heir of", "// a member is made.", nil},
		"a comment and code": {"// A member is let", "go run()", nil},
		"code and a comment": {"is := let", "// go when it has left.", nil},
		"two paragraphs":     {"// A member is let", "//", nil},
	} {
		assert.ElementsMatch(t, c.want, usesAcrossBreak(found, c.line, c.next), name)
	}
}

func TestRetiredWordsAreFoundInTextsAndIdentifiers(t *testing.T) {
	found := usesOf([]string{"founder", "heir", "let go", "made up for"})
	for line, want := range map[string][]string{
		"// The heir of a member.":    {"heir"},
		"heirs, others := 0, 0":       {"heir"},
		"func TestAnHeirIsMade() {":   {"heir"},
		"g.isHeir(i)":                 {"heir"},
		"func isFounder() bool {":     {"founder"},
		"func TestAFounderJoins() {":  {"founder"},
		"func TestPDHeirsLead() {":    {"heir"},
		"func TestKV15HeirsLead() {":  {"heir"},
		"func TestTheHeirsLead() {":   {"heir"},
		"TestAMemberIsLetGoOnceReady": {"let go"},
		"// Who the founders found.":  {"founder"},
		"found := cloudfoundry":       nil,
		"// It is made up for.":       {"made up for"},
		"// Their own, theirs alike.": nil,
		"heirloom":                    nil,
		"func TestAnHeirloomStays()":  nil,
	} {
		assert.Equal(t, want, found(line), line)
	}
}
