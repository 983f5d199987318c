package process

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Keys is the tree of the keys that a configuration file may have. A nil
// subtree is a plain value; Open is a table with keys of any name.
type Keys map[string]Keys

// AnyKeys returns the subtree that takes whatever it is given.
func AnyKeys() Keys { return Keys{"*": nil} }

// ParseKeys reads a tree from lines "section: key key …". A section is a
// dotted path, "." the top level; the key * opens a section to any key. A
// section that is named more than once grows.
func ParseKeys(text string) Keys {
	root := Keys{}
	for line := range strings.Lines(text) {
		section, keys, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		at := root
		if section != "." {
			for part := range strings.SplitSeq(section, ".") {
				if at[part] == nil {
					at[part] = Keys{}
				}
				at = at[part]
			}
		}
		for key := range strings.FieldsSeq(keys) {
			if _, there := at[key]; !there {
				at[key] = nil
			}
		}
	}
	return root
}

// KeysOf returns the tree of a document, so that a complete answer of the real
// program serves as the list of what it knows. Empty tables become open ones.
func KeysOf(doc map[string]any) Keys {
	if len(doc) == 0 {
		return AnyKeys()
	}
	keys := Keys{}
	for key, value := range doc {
		keys[key] = nil
		if table, ok := value.(map[string]any); ok {
			keys[key] = KeysOf(table)
		}
	}
	return keys
}

// Merge adds the keys of other.
func (k Keys) Merge(other Keys) Keys {
	for key, sub := range other {
		if sub != nil && k[key] != nil {
			k[key].Merge(sub)
			continue
		}
		if _, there := k[key]; !there || sub != nil {
			k[key] = sub
		}
	}
	return k
}

// Unknown lists the dotted names in doc that the tree does not have, and those
// that are a table where a value belongs or the other way round, sorted.
func (k Keys) Unknown(doc map[string]any) []string {
	var bad []string
	for key, value := range doc {
		sub, known := k[key]
		if _, open := k["*"]; open && !known {
			continue
		}
		table, isTable := value.(map[string]any)
		switch {
		case !known:
			bad = append(bad, key)
		case isTable && sub == nil:
			bad = append(bad, key+" (a table where a value belongs)")
		case !isTable && sub != nil:
			if _, open := sub["*"]; !open {
				bad = append(bad, key+" (a value where a table belongs)")
			}
		case isTable:
			for _, below := range sub.Unknown(table) {
				bad = append(bad, key+"."+below)
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// ReadTOML reads a configuration file and refuses any key that known does not
// have. An empty path is an empty file.
func ReadTOML(path string, known Keys) (map[string]any, error) {
	doc := map[string]any{}
	if path == "" {
		return doc, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration file: %w", err)
	}
	if err := toml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("parse configuration file %s: %w", path, err)
	}
	if bad := known.Unknown(doc); len(bad) > 0 {
		return nil, fmt.Errorf("configuration file %s has unknown keys: %s", path, strings.Join(bad, ", "))
	}
	return doc, nil
}

// Lookup returns the value at a dotted path, or nil.
func Lookup(doc map[string]any, path string) any {
	key, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return doc[key]
	}
	table, ok := doc[key].(map[string]any)
	if !ok {
		return nil
	}
	return Lookup(table, rest)
}

// LookupText returns the text at a dotted path, or fallback where there is none or
// it is empty.
func LookupText(doc map[string]any, path, fallback string) string {
	if text, ok := Lookup(doc, path).(string); ok && text != "" {
		return text
	}
	return fallback
}

// Set puts a value at a dotted path, making the tables on the way.
func Set(doc map[string]any, path string, value any) {
	key, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		doc[key] = value
		return
	}
	table, ok := doc[key].(map[string]any)
	if !ok {
		table = map[string]any{}
		doc[key] = table
	}
	Set(table, rest, value)
}

// Overlay copies the values of src over those of dst, table by table.
func Overlay(dst, src map[string]any) {
	for key, value := range src {
		below, isTable := value.(map[string]any)
		at, there := dst[key].(map[string]any)
		if isTable && there {
			Overlay(at, below)
			continue
		}
		dst[key] = value
	}
}
