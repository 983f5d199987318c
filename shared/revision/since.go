package revision

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

const (
	// mostItems is how many items of a configuration a difference names.
	mostItems = 3
	// longestValue is how many bytes of a value it shows.
	longestValue = 60
)

// ChangesSince says what of a target is not as in the stored rendering of a hash: the items of
// its configuration, else the first difference of its template. It is empty if there is
// no such rendering.
func (t Target) ChangesSince(hash string, stored []appsv1.ControllerRevision) string {
	for _, s := range stored {
		old, err := Decode(s)
		if err != nil {
			continue // Resolve has failed on it before
		}
		if h, err := old.Hash(); err == nil && h == hash {
			return recordDifference(old, t.Record)
		}
	}
	return ""
}

func recordDifference(old, wanted Record) string {
	var items []string
	for _, name := range slices.Sorted(mapKeys(wanted.Files, old.Files)) {
		items = append(items, fileDifference(name, old.Files[name], wanted.Files[name])...)
	}
	if more := len(items) - mostItems; more > 0 {
		items = append(items[:mostItems], fmt.Sprintf("and %d more", more))
	}
	if len(items) > 0 {
		return "config: " + strings.Join(items, ", ")
	}
	return firstDifference(old, wanted)
}

// fileDifference names the items in which two files differ, or the file if it is no
// TOML.
func fileDifference(name, old, wanted string) []string {
	if old == wanted {
		return nil
	}
	before, err := tomlconfig.Parse(name, old)
	after, afterErr := tomlconfig.Parse(name, wanted)
	if err != nil || afterErr != nil {
		return []string{name}
	}
	was, is := before.Leaves(), after.Leaves()
	var out []string
	for _, key := range slices.Sorted(mapKeys(is, was)) {
		if from, to := formatItem(was, key), formatItem(is, key); from != to {
			out = append(out, fmt.Sprintf("%s: %s → %s", key, from, to))
		}
	}
	return out
}

// formatItem shows an item of a flat configuration.
func formatItem(items map[string]any, key string) string {
	v, set := items[key]
	if !set {
		return "(unset)"
	}
	text := encodeValue(v)
	if len(text) > longestValue {
		text = strings.ToValidUTF8(text[:longestValue], "") + "…"
	}
	return text
}
