package persisted

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Item of a table that PD stores.
type Item struct {
	// Key with dots, such as schedule.leader-schedule-limit.
	Key string
	// Value as the file has it: text, a number, a truth or a list.
	Value any
}

// String is the item as it stands in a file.
func (i Item) String() string {
	text, err := json.Marshal(i.Value)
	if err != nil {
		return fmt.Sprintf("%s = %v", i.Key, i.Value)
	}
	if n, ok := i.Value.(float64); ok && n == math.Trunc(n) {
		text = fmt.Appendf(nil, "%.1f", n)
	}
	return i.Key + " = " + string(text)
}

// MissingItem is an item that PD does not have as a file says.
type MissingItem struct {
	Item
	// Has is what PD shows instead, as JSON; empty if it shows nothing.
	Has string
	// Send is the value in the form in which PD takes it.
	Send any
	// Rewrite says how the item is to be written if PD does not start with a file that has it
	// so; empty if it does.
	Rewrite string
}

// bootstrapOnly are items of those tables that PD has no call for. They count when a
// cluster is bootstrapped.
var bootstrapOnly = []string{"schedule.store-balance-rate", "schedule.store-limit", "schedule.schedulers", "schedule.schedulers-v2", "schedule.schedulers-payload"}

// ParseItems returns the items of a file that PD stores and takes while it runs, sorted by
// key; none if the text is no TOML.
func ParseItems(text string) []Item {
	tree, err := tomlconfig.Parse("file", text)
	if err != nil {
		return nil
	}
	var out []Item
	for _, section := range pd.StoredSections() {
		if table, ok := tree[section].(map[string]any); ok {
			out = collectItems(out, section, table)
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func collectItems(into []Item, path string, table map[string]any) []Item {
	for name, value := range table {
		key := path + "." + name
		below, isTable := value.(map[string]any)
		switch {
		case slices.Contains(bootstrapOnly, key):
		case isTable:
			into = collectItems(into, key, below)
		default:
			into = append(into, Item{Key: key, Value: value})
		}
	}
	return into
}

// AppliesOnline says whether members that run with some files get others without a restart:
// if they differ in nothing but what PD stores. An item that is taken away needs
// none: PD keeps its value. One that PD has no call for does: nothing but a start shows that PD
// starts with it.
func AppliesOnline(file string, old, wanted map[string]string) verdict.Verdict {
	for _, name := range slices.Sorted(maps.Keys(mergeMaps(old, wanted))) {
		if name != file && old[name] != wanted[name] {
			return verdict.Refuse("file " + name)
		}
	}
	before, err := tomlconfig.Parse("file", old[file])
	if err != nil {
		return verdict.Refuse("file " + file)
	}
	after, err := tomlconfig.Parse("file", wanted[file])
	if err != nil {
		return verdict.Refuse("file " + file)
	}
	for _, name := range slices.Sorted(maps.Keys(mergeMaps(before, after))) {
		was, _ := before[name].(map[string]any)
		is, isTable := after[name].(map[string]any)
		stored := slices.Contains(pd.StoredSections(), name) && (isTable || after[name] == nil)
		if !stored && !reflect.DeepEqual(before[name], after[name]) {
			return verdict.Refuse(name + " is changed")
		}
		for _, key := range bootstrapOnly {
			section, item, _ := strings.Cut(key, ".")
			if section == name && is[item] != nil && !reflect.DeepEqual(was[item], is[item]) {
				return verdict.Refuse(key + " is changed")
			}
		}
	}
	return verdict.Allow()
}

func mergeMaps[V any](a, b map[string]V) map[string]V {
	out := map[string]V{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// FindMissing returns those of some items that PD does not have, by what it shows.
func FindMissing(items []Item, shown map[string]string) []MissingItem {
	var out []MissingItem
	for _, item := range items {
		has, ok := shown[item.Key]
		if item.Key == mergeKeys && isZero(item.Value) && has == keysBySize(shown) {
			continue
		}
		var now any
		ok = ok && json.Unmarshal([]byte(has), &now) == nil
		rewrite := ""
		if ok {
			rewrite = rewriteItem(item, now)
		}
		if send, same := compareItem(item, now, ok); rewrite != "" || !same {
			out = append(out, MissingItem{Item: item, Has: has, Send: send, Rewrite: rewrite})
		}
	}
	return out
}

// mergeKeys is the item for which PD shows what follows from mergeSize where it is 0.
const mergeKeys, mergeSize = "schedule.max-merge-region-keys", "schedule.max-merge-region-size"

// keysBySize is what PD shows for mergeKeys where that is 0; empty if it does not show mergeSize.
func keysBySize(shown map[string]string) string {
	const keysPerMiB = 10_000 // ScheduleConfig.GetMaxMergeRegionKeys in PD's sources
	size, err := strconv.ParseUint(shown[mergeSize], 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(size*keysPerMiB, 10)
}

// lists are items that PD shows as text, and has as lists in its file.
var lists = []string{"replication.location-labels", "pd-server.runtime-services"}

// fractions are numbers that may have a fraction, beside those with ratio in their name.
var fractions = []string{"pd-server.server-memory-limit", "pd-server.server-memory-limit-gc-trigger", "pd-server.gc-tuner-threshold"}

// rewriteItem says how an item is to be written whose value is of another type than what PD has,
// by what it shows; empty if it is not. PD may take it while it runs, but does not start with
// such a file.
func rewriteItem(item Item, now any) string {
	is, isNumber := now.(float64)
	isFraction := strings.Contains(item.Key, "ratio") || slices.Contains(fractions, item.Key)
	switch want := item.Value.(type) {
	case string:
		truths := []string{"true", "false"}
		switch is := now.(type) {
		case float64, bool:
			return "without quotation marks"
		case []any:
			return "as a list"
		case string:
			switch {
			case slices.Contains(lists, item.Key):
				return "as a list"
			case slices.Contains(truths, is) && slices.Contains(truths, want):
				return "without quotation marks"
			}
		}
	case float64:
		// PD shows 4 and 4.0 alike; 4.5 in the place of a whole number it refuses.
		if isNumber && is == math.Trunc(is) && want == math.Trunc(want) && !isFraction {
			return "without a fraction"
		}
	case int64:
		if isNumber && isFraction {
			return fmt.Sprintf("as %d.0", want) // toml v0.3.1 takes no whole number there
		}
	}
	return ""
}

// compareItem says whether PD shows an item as it is wanted, and how it takes it. PD writes
// durations and truths as text, joins lists of labels with commas, and leaves out
// some items that are zero.
func compareItem(item Item, now any, shown bool) (send any, same bool) {
	want := item.Value
	truth, isTruth := want.(bool)
	if !shown {
		// Of those that are left out, all truths are text.
		if isTruth {
			return strconv.FormatBool(truth), !truth
		}
		return want, isZero(want)
	}
	switch is := now.(type) {
	case string:
		text := formatPlain(want)
		if item.Key == "pd-server.dashboard-address" && text == "auto" {
			return text, is != "none" // PD puts the member there that it chooses
		}
		return text, equalText(is, text)
	case float64:
		number, err := strconv.ParseFloat(formatPlain(want), 64)
		return want, err == nil && number == is
	case bool:
		return want, isTruth && truth == is
	case []any:
		return want, formatPlain(is) == formatPlain(want)
	}
	return want, now == nil && isZero(want)
}

// formatPlain is a value as text, with the entries of a list joined by commas.
func formatPlain(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	parts := make([]string, len(list))
	for n, part := range list {
		parts[n] = fmt.Sprint(part)
	}
	return strings.Join(parts, ",")
}

func equalText(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := time.ParseDuration(a)
	y, errY := time.ParseDuration(b)
	return errX == nil && errY == nil && x == y
}

func isZero(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	}
	return false
}
