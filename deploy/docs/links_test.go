package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

const root = "../.."

// pages returns every page.
func pages(t *testing.T) map[string]string {
	t.Helper()
	_ = os.Getenv("PAGES") // with other pages, Go does not take an old result for this one
	out, err := docs.Pages(root)
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	target  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors returns the anchors of a page as GitHub makes them, and as mkdocs does.
func anchors(text string) (github, mkdocs []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		words := strings.ToLower(strings.NewReplacer("`", "", "*", "").Replace(target.ReplaceAllString(m[1], "$1")))
		words = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(words, "")
		github = append(github, strings.ReplaceAll(words, " ", "-"))
		ascii := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(words, "")
		mkdocs = append(mkdocs, regexp.MustCompile(`[- ]+`).ReplaceAllString(strings.TrimSpace(ascii), "-"))
	}
	return github, mkdocs
}

// mkdocs checks that pages exist. It checks no anchors before version 1.6, and not the
// pages of the top level.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s links to %s, which does not exist", name, m[1])
					continue
				}
				if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(to, "docs/") {
					t.Errorf("%s links to %s, which is outside of docs and so not in the built pages: write its path as code", name, m[1])
				}
			}
			if anchor == "" {
				continue
			}
			github, mkdocs := anchors(all[to])
			assert.Contains(t, github, anchor, "%s links to %s: no such heading", name, m[1])
			assert.Contains(t, mkdocs, anchor, "%s links to %s: mkdocs makes another anchor of that heading, use simpler words in it", name, m[1])
		}
	}
}

func TestEveryPageIsInTheNavigation(t *testing.T) {
	config, err := os.ReadFile(root + "/docs/mkdocs.yml")
	require.NoError(t, err)
	for name := range pages(t) {
		page, ours := strings.CutPrefix(name, "docs/")
		if ours && !strings.HasPrefix(page, "decisions/0") {
			assert.Regexp(t, `(?m)^ *- .*: `+regexp.QuoteMeta(page)+`$`, string(config), "docs/mkdocs.yml does not list %s", page)
		}
	}
}

func TestHeadingsOfAPageDiffer(t *testing.T) {
	for name, text := range pages(t) {
		github, _ := anchors(text)
		slices.Sort(github)
		assert.Len(t, slices.Compact(slices.Clone(github)), len(github), "%s has the same heading twice, so that links lead to the first", name)
	}
}
