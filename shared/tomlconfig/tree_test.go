package tomlconfig_test

import (
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

const field = "spec.config"

func parse(t *testing.T, text string) tomlconfig.Tree {
	t.Helper()
	tree, err := tomlconfig.Parse(field, text)
	require.NoError(t, err)
	return tree
}

func TestTheFormattingOfTOMLDoesNotMatter(t *testing.T) {
	cases := []struct {
		name, a, b string
		want       bool
	}{
		{"a key that is only there once, among comments", "a = 1\n# hello\n[t]\nx = 'y'\nz = true\n", "[t]\nz=true # yes\nx=\"y\"\n", false},
		{"order of tables and keys", "[b]\ny = 1\nx = 2\n[a]\nz = 3\n", "[a]\nz=3\n\n[b]\nx=2\ny=1 # last\n", true},
		{"dotted keys and tables", "storage.data-dir = 'x'\nstorage.cache.size = 1", "[storage]\ndata-dir='x'\n[storage.cache]\nsize=1", true},
		{"inline tables", "a = {b = 1, c = {d = 'e'}}", "[a]\nb = 1\nc.d = 'e'", true},
		{"quoted keys", "\"a\" = 1\n'b.c' = 2", "a = 1\n\"b.c\" = 2", true},
		{"a quoted dot is no path", "'b.c' = 2", "b.c = 2", false},
		{"arrays of tables", "[[r]]\nn = 1\n[[r]]\nn = 2", "r = [{n = 1}, {n = 2}]", true},
		{"arrays keep their order", "a = [1, 2]", "a = [2, 1]", false},
		{"spellings of a number", "a = 0x10\nb = 1_000\nc = 1e3", "a = 16\nb = 1000\nc = 1000.0", true},
		{"a fraction is another type", "a = 1", "a = 1.0", false},
		{"spellings of a string", "a = \"\"\"\nx\"\"\"", "a = 'x'", true},
		{"a moment in two time zones", "a = 2026-01-02T03:04:05Z", "a = 2026-01-02T04:04:05+01:00", true},
		{"a local date is not a moment", "a = 2026-01-02", "a = 2026-01-02T00:00:00Z", false},
		{"not a number is itself", "a = nan", "a = nan", true},
		{"one key more", "a = 1", "a = 1\nb = 2", false},
		{"another key", "a = 1", "b = 1", false},
		{"a value for a table", "a = 1", "a = {}", false},
		{"nothing", "", "# nothing", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := parse(t, c.a), parse(t, c.b)
			assert.Equal(t, c.want, tomlconfig.Equal(a, b))
			assert.Equal(t, c.want, tomlconfig.Equal(b, a))
			if !c.want {
				return
			}
			textA, err := tomlconfig.Render(a)
			require.NoError(t, err)
			again := parse(t, textA)
			assert.True(t, tomlconfig.Equal(a, again), textA)
		})
	}
}

func TestBadTOMLIsNamedWithPlaceAndRemedy(t *testing.T) {
	cases := []struct{ name, text, place string }{
		{"no value", "a = 1\nb =\n", "line 2"},
		{"not TOML at all", "a: 1\n", "line 1, column 2"},
		{"a key twice", "a = 1\na = 2\n", ""},
		{"a table twice", "[a]\nx=1\n[a]\ny=1\n", ""},
		{"a value used as a table", "a = 1\na.b = 2\n", ""},
		{"an open string", "[t]\n\n  s = \"abc\n", "line 3"},
		{"a number that is too big", "a = 99999999999999999999\n", "line 1"},
		{"a date that does not exist", "a = 2026-13-01\n", "line 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tree, err := tomlconfig.Parse(field, c.text)
			require.Error(t, err)
			assert.Nil(t, tree)
			t.Log(err)
			assert.Regexp(t, `^spec\.config: not valid TOML.*: correct it( there)?$`, err.Error())
			assert.Contains(t, err.Error(), c.place)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestConflicts(t *testing.T) {
	owned := []string{"name", "storage.data-dir", "security", `"odd.key".x`}
	cases := []struct {
		name, text string
		want       []string
	}{
		{"nothing of the operator's", "[storage]\nreserve-space = '1GB'\n[log]\nname = 'x'", nil},
		{"a key at the top", "name = 'x'", []string{"name"}},
		{"a key in a table", "[storage]\ndata-dir = '/x'", []string{"storage.data-dir"}},
		{"a dotted key", "storage.data-dir = '/x'", []string{"storage.data-dir"}},
		{"a key in an inline table", "storage = {data-dir = '/x'}", []string{"storage.data-dir"}},
		{"in another case", "Name = 'x'\n[Storage]\nData-Dir = 1", []string{"name", "storage.data-dir"}},
		{"a value below a table that is the operator's", "[security]\nca-path = 'x'", []string{"security"}},
		{"an empty table that is the operator's", "[security]", []string{"security"}},
		{"a value where the operator needs a table", "storage = 'x'", []string{"storage.data-dir"}},
		{"an array where the operator needs a table", "[[storage]]\nx = 1", []string{"storage.data-dir"}},
		{"a key with a dot", "['odd.key']\nx = 1", []string{`"odd.key".x`}},
		{"the parts of a key with a dot are not that key", "odd.key.x = 1", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, tomlconfig.Conflicts(parse(t, c.text), owned))
		})
	}
}

func TestTheMessageForAnOwnedKey(t *testing.T) {
	tree := parse(t, "[storage]\ndata-dir = '/x'")
	require.EqualError(t, tomlconfig.Check(field, tree, []string{"addr", "storage.data-dir"}),
		`spec.config: key "storage.data-dir" is set by the operator: remove it`)
	require.NoError(t, tomlconfig.Check(field, tree, []string{"addr"}))
	assert.Equal(t, `spec.config: key "a.b" is set by the operator: remove it`, tomlconfig.OwnedMessage(field, "a.b"))
}

func TestMerge(t *testing.T) {
	const written = "log.level = 'info'\nx = 1\n[storage]\nreserve-space = '1GB'\n[list]\na = [1]"
	user := parse(t, written)
	operator := map[string]any{
		"storage.data-dir": "/var/lib/tikv",
		"log":              map[string]any{"file": map[string]any{"max-days": 3}},
		"x.y":              int32(7),
		"storage.main.dir": []string{"/data0", "/data1"},
		`"a.b"`:            uint16(1),
		"labels":           map[string]string{"zone": "a"},
		"ratio":            float32(0.5),
		"enable":           true,
	}
	merged := tomlconfig.Merge(user, operator)
	text, err := tomlconfig.Render(merged)
	require.NoError(t, err)
	assert.True(t, tomlconfig.Equal(merged, parse(t, text)), text)
	want := parse(t, `
"a.b" = 1
enable = true
ratio = 0.5
labels.zone = "a"
list.a = [1]
log = {level = "info", file.max-days = 3}
storage = {data-dir = "/var/lib/tikv", reserve-space = "1GB", main.dir = ["/data0", "/data1"]}
x.y = 7
`)
	assert.True(t, tomlconfig.Equal(want, merged), text)

	array := merged["list"].(map[string]any)["a"].([]any)
	array[0] = int64(9)
	assert.True(t, tomlconfig.Equal(user, parse(t, written)), "the user's tree is not changed")
	assert.Equal(t, map[string]any{"file": map[string]any{"max-days": 3}}, operator["log"], "nor the operator's")
	assert.Equal(t, tomlconfig.Tree{"a": int64(1)}, tomlconfig.Merge(nil, map[string]any{"a": 1}))
	assert.Equal(t, tomlconfig.Tree{}, tomlconfig.Merge(nil, nil))
}

func TestRenderIsSortedAndRefusesWhatTOMLCannotSay(t *testing.T) {
	tree := tomlconfig.Tree{
		"b": int64(1), "a": "x", "t": map[string]any{"z": true, "y": []any{int64(1)}},
		"when": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "day": toml.LocalDate{Year: 2026, Month: 1, Day: 2},
	}
	for range 20 {
		text, err := tomlconfig.Render(tree)
		require.NoError(t, err)
		assert.Equal(t, "a = 'x'\nb = 1\nday = 2026-01-02\nwhen = 2026-01-02T03:04:05Z\n\n[t]\ny = [1]\nz = true\n", text)
	}
	_, err := tomlconfig.Render(tomlconfig.Tree{"f": func() {}})
	assert.ErrorContains(t, err, "render TOML: ")
}
