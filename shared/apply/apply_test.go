package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/apply"
)

func TestAFieldThatIsEmptyChangesNoHash(t *testing.T) {
	base, err := apply.Hash(map[string]any{"a": 1, "list": []any{map[string]any{"x": "y"}}})
	require.NoError(t, err)
	for name, v := range map[string]map[string]any{
		"a null":        {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": nil},
		"an empty map":  {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": map[string]any{"deep": map[string]any{}}},
		"an empty list": {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apply.Hash(v)
			require.NoError(t, err)
			assert.Equal(t, base, got)
		})
	}
	for name, v := range map[string]map[string]any{
		"another value":               {"a": 2, "list": []any{map[string]any{"x": "y"}}},
		"an empty text, as of labels": {"a": 1, "list": []any{map[string]any{"x": "y"}}, "new": ""},
		"a selector of everything":    {"a": 1, "list": []any{map[string]any{"x": "y", "namespaceSelector": map[string]any{}}}},
		"an empty text in a list":     {"a": 1, "list": []any{map[string]any{"x": "y", "new": ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apply.Hash(v)
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
		"list entries are found by name":           {[]any{m{"name": "b"}, m{"name": "a", "x": true}}, []any{m{"name": "a"}}, true},
		"a list entry that is gone is missed":      {[]any{m{"name": "b"}}, []any{m{"name": "a"}}, false},
		"lists of plain values are compared whole": {[]any{"a", "b"}, []any{"a"}, false},
		"finalizers of others do not matter":       {m{"finalizers": []any{"a", "b"}}, m{"finalizers": []any{"b"}}, true},
		"a finalizer that is gone is missed":       {m{"finalizers": []any{"a"}}, m{"finalizers": []any{"b"}}, false},
		"an empty list is held by nothing":         {nil, []any{}, true},
		"a map is not held by a text":              {"a", m{"a": int64(1)}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.holds, apply.Holds(c.have, c.want)) })
	}
}
