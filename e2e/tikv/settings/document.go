package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// keys is what a configuration file may have: nil for a value, a table otherwise;
// "*" lets anything be there.
type keys map[string]keys

// parseKeys reads lines of "section: key key"; the section "." is the top.
func parseKeys(text string) keys {
	root := keys{}
	for line := range strings.Lines(text) {
		section, names, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		at := root
		if section != "." {
			for part := range strings.SplitSeq(section, ".") {
				if at[part] == nil {
					at[part] = keys{}
				}
				at = at[part]
			}
		}
		for name := range strings.FieldsSeq(names) {
			if _, there := at[name]; !there {
				at[name] = nil
			}
		}
	}
	return root
}

// unknown lists what a document has that it may not have.
func (k keys) unknown(doc map[string]any) []string {
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
			for _, below := range sub.unknown(table) {
				bad = append(bad, key+"."+below)
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// readTOML reads a configuration file; no file is an empty one.
func readTOML(path string) (map[string]any, error) {
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
	if bad := knownKeys().unknown(doc); len(bad) > 0 {
		return nil, fmt.Errorf("configuration file %s has unknown keys: %s", path, strings.Join(bad, ", "))
	}
	return doc, nil
}

func findKey(doc map[string]any, path string) (value any, there bool) {
	key, rest, deeper := strings.Cut(path, ".")
	value, there = doc[key]
	if !deeper {
		return value, there
	}
	table, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return findKey(table, rest)
}

func setKey(doc map[string]any, path string, value any) {
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
	setKey(table, rest, value)
}
