package architecture

import (
	"cmp"
	"fmt"
	"io/fs"
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

// proseWords is how many words the pages of docs have at most, decisions and what is
// generated apart.
const proseWords = 20_000

var (
	// notProse is what readers do not read as sentences: code blocks, blocks that a command
	// writes, code within a line, and where links lead.
	notProse    = regexp.MustCompile("(?ms)^ *```.*?^ *```|<!-- written by [^>]*: begin -->.*?<!-- written by [^>]*: end -->|`[^`\n]*`|\\]\\([^)]*\\)")
	wordPattern = regexp.MustCompile(`\S*[A-Za-z0-9]\S*`)
)

// prose counts the words of a page; none if the page is generated.
func prose(page string) int {
	if strings.HasPrefix(page, "<!-- Written by ") {
		return 0
	}
	return len(wordPattern.FindAllString(notProse.ReplaceAllString(page, " "), -1))
}

// A user who looks for something reads all pages, and what is said twice has to be changed
// twice.
func TestTheDocsHaveAtMost20000WordsOfProse(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	type page struct {
		name  string
		words int
	}
	var pages []page
	sum := 0
	top := filepath.Join(root, "docs")
	require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && path == filepath.Join(top, "decisions") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		name, _ := filepath.Rel(root, path)
		pages = append(pages, page{name, prose(string(text))})
		sum += pages[len(pages)-1].words
		return err
	}))
	require.Greater(t, len(pages), 40)
	slices.SortFunc(pages, func(a, b page) int { return b.words - a.words })
	var longest []string
	for _, p := range pages[:10] {
		longest = append(longest, fmt.Sprintf("%5d %s", p.words, p.name))
	}
	t.Logf("%d words in %d pages", sum, len(pages))
	assert.LessOrEqual(t, sum, proseWords, "words of prose in docs: take out what another page, a table or the code says; the longest pages are\n%s", strings.Join(longest, "\n"))
}

func TestWordsOfProseAreCounted(t *testing.T) {
	for page, want := range map[string]int{
		"# One two\n\n- **Three** [four five](six.md#seven) `eight nine` – 10.":                       6,
		"one\n\n```sh\ntwo three\n```\n\n   ```yaml\n   four: five\n   ```\n\nsix":                    2,
		"| one | `two` | – |\n|---|---|---|\n| three | | |":                                           2,
		"one\n<!-- written by make bench: begin -->\ntwo\n<!-- written by make bench: end -->\nthree": 2,
		"<!-- Written by \"make generate\" from x. Do not edit. -->\n\none two":                       0,
	} {
		assert.Equal(t, want, prose(page), page)
	}
}
