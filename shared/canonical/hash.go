package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hash returns a short digest of a JSON value in which nulls, empty maps and empty
// lists do not count, so that a field that a later version adds and leaves empty
// changes no hash. An empty text counts: a key of labels or of a nodeSelector may
// well have no other value. So does an empty selector, which selects everything
// where one that is left out selects nothing, and an empty spec.tls.
func Hash(v any) (string, error) {
	tree, ok := asJSON(v)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("encode for hashing: %w", err)
		}
		if err := json.Unmarshal(raw, &tree); err != nil {
			return "", fmt.Errorf("decode for hashing: %w", err)
		}
	}
	tree, _ = pruneEmpty(tree)
	raw, err := json.Marshal(tree)
	if err != nil {
		return "", fmt.Errorf("encode for hashing: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:5]), nil
}

// asJSON returns a copy of a value as it would be decoded from JSON: numbers become
// float64. It knows the types that objects are encoded with, and saves them the way
// through text.
func asJSON(v any) (any, bool) {
	switch x := v.(type) {
	case nil, bool, float64:
		return x, true
	case string:
		return x, utf8.ValidString(x) // text replaces what is none
	case int64:
		return float64(x), true
	case map[string]any:
		if x == nil {
			return nil, true
		}
		out := make(map[string]any, len(x))
		for key, value := range x {
			var ok bool
			if out[key], ok = asJSON(value); !ok || !utf8.ValidString(key) {
				return nil, false
			}
		}
		return out, true
	case []any:
		if x == nil {
			return nil, true
		}
		out := make([]any, len(x))
		for i, value := range x {
			var ok bool
			if out[i], ok = asJSON(value); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return nil, false
}

// pruneEmpty drops nulls, empty maps and empty lists, and reports whether anything is left.
func pruneEmpty(v any) (any, bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if e, ok := pruneEmpty(e); ok || e != nil && (strings.HasSuffix(k, "Selector") || isSwitch(k)) {
				x[k] = e
			} else {
				delete(x, k)
			}
		}
		return x, len(x) > 0
	case []any:
		// Elements of a list keep their place: an empty one may mean something.
		for i := range x {
			x[i], _ = pruneEmpty(x[i])
		}
		return x, len(x) > 0
	case nil:
		return nil, false
	}
	return v, true
}

// isSwitch reports whether a field of a group switches something on by being there, even if
// it is empty.
func isSwitch(field string) bool {
	return slices.Contains([]string{"tls", "mysql", "backend", "selfSigned", "authToken", "sessionToken"}, field)
}
