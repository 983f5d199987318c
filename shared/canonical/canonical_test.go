package canonical_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/canonical"
)

func TestAFieldThatIsEmptyChangesNoHash(t *testing.T) {
	base, err := canonical.Hash(map[string]any{"a": 1, "list": []any{map[string]any{"x": "y"}}})
	require.NoError(t, err)
	for name, v := range map[string]map[string]any{
		"a null":        {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": nil},
		"an empty map":  {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": map[string]any{"deep": map[string]any{}}},
		"an empty list": {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canonical.Hash(v)
			require.NoError(t, err)
			assert.Equal(t, base, got)
		})
	}
	for name, v := range map[string]map[string]any{
		"another value":               {"a": 2, "list": []any{map[string]any{"x": "y"}}},
		"an empty text, as of labels": {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": ""},
		"TLS as it is by default":     {"a": 1, "list": []any{map[string]any{"x": "y", "tls": map[string]any{}}}},
		"a selector of everything":    {"a": 1, "list": []any{map[string]any{"x": "y", "namespaceSelector": map[string]any{}}}},
		"an empty text in a list":     {"a": 1, "list": []any{map[string]any{"x": "y", "new": ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canonical.Hash(v)
			require.NoError(t, err)
			assert.NotEqual(t, base, got)
		})
	}
}

func TestHolds(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		have, want any
		holds      bool
	}{
		"foreign fields do not matter":             {m{"a": int64(1), "b": int64(2)}, m{"a": int64(1)}, true},
		"a changed field does":                     {m{"a": int64(2)}, m{"a": int64(1)}, false},
		"a missing field does":                     {m{}, m{"a": int64(1)}, false},
		"an empty map is held by nothing":          {m{}, m{"a": m{}}, true},
		"an empty object may switch something on":  {m{}, m{"tls": m{}}, false},
		"and is there when it is":                  {m{"tls": m{}}, m{"tls": m{}}, true},
		"list entries are found by name":           {[]any{m{"name": "b"}, m{"name": "a", "x": true}}, []any{m{"name": "a"}}, true},
		"a list entry that is gone is missed":      {[]any{m{"name": "b"}}, []any{m{"name": "a"}}, false},
		"lists of plain values are compared whole": {[]any{"a", "b"}, []any{"a"}, false},
		"finalizers of others do not matter":       {m{"finalizers": []any{"a", "b"}}, m{"finalizers": []any{"b"}}, true},
		"a finalizer that is gone is missed":       {m{"finalizers": []any{"a"}}, m{"finalizers": []any{"b"}}, false},
		"an empty list is held by nothing":         {nil, []any{}, true},
		"a map is not held by a text":              {"a", m{"a": int64(1)}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.holds, canonical.Contains(c.have, c.want)) })
	}
}

// The hash of a tree is the hash of its text: it names ConfigMaps and revisions.
func TestATreeHasTheHashOfItsText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	keys := []string{"a", "b", "selector", "nodeSelector", "list"}
	var value func(depth int) any
	value = func(depth int) any {
		scalars := []any{nil, "", "x<y>\u2028", "\xff", true, false, int64(0), int64(-7), int64(1) << 60, 1.5, 1e21, map[string]any(nil), []any(nil)}
		kind := random.IntN(4)
		switch {
		case depth > 0 && kind == 0:
			out := map[string]any{}
			for _, key := range keys[:random.IntN(len(keys)+1)] {
				out[key] = value(depth - 1)
			}
			return out
		case depth > 0 && kind == 1:
			out := []any{}
			for range random.IntN(3) {
				out = append(out, value(depth-1))
			}
			return out
		}
		return scalars[random.IntN(len(scalars))]
	}
	for range 5000 {
		tree := map[string]any{"a": value(4), "b": value(4)}
		text, err := json.Marshal(tree)
		require.NoError(t, err)
		want, err := canonical.Hash(json.RawMessage(text))
		require.NoError(t, err)
		before := fmt.Sprintf("%#v", tree)
		got, err := canonical.Hash(tree)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s", text)
		require.Equal(t, before, fmt.Sprintf("%#v", tree), "it is left as it is")
	}
}
