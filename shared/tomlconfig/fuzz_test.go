package tomlconfig_test

import (
	"strings"
	"testing"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

// P10, P12: whatever is written into spec.config is either refused in one line that
// names the field, or is rendered, and means the same when it is read again.
func FuzzTheTextOfASpec(f *testing.F) {
	for _, bomb := range bombs() {
		f.Add(bomb.text)
	}
	for _, text := range []string{
		"", "=", "a = 1", "[a]\nb.c = {d = [1, {e = 'f'}]}", "[[a]]\n[a.b]\n[[a]]\n[a.b]", "a = 1\na = 2", "[a]\n[a]", "\"\" = ''",
		"a = 2026-01-02T03:04:05Z\nb = 2026-01-02\nc = 03:04:05\nd = nan\ne = -inf", "a = \"\\U0010ffff\"", "\r\n", "\x00", "a = [",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := tomlconfig.Parse(field, text)
		if err == nil {
			tomlconfig.Conflicts(tree, []string{"a.b", "data-dir"})
			tree = tomlconfig.Merge(tree, map[string]any{"owned.key": 1})
			var rendered string
			if rendered, err = tomlconfig.Render(tree); err == nil {
				again, err := tomlconfig.Parse(field, rendered)
				if err != nil {
					if !strings.Contains(err.Error(), "at most 10000 are allowed") { // the key that was added
						t.Fatalf("%v in %q from %q", err, rendered, text)
					}
				} else if !tomlconfig.Equal(tree, again) {
					t.Fatalf("%q became %q", text, rendered)
				}
				return
			}
		} else if !strings.HasPrefix(err.Error(), field+": ") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q", err.Error())
		}
		if len(err.Error()) > 2048 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
	})
}
