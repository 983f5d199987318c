package settings

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Item is one item of a component's configuration that it takes while it runs.
type Item struct {
	// Key of the item in the file: the names of its tables and its own, with dots.
	Key string
	// Name by which the member takes it; Key if empty.
	Name string
	// Kind of its value.
	Kind Kind
	// Blind says that the member does not show what it was given.
	Blind bool
	// Ignored is the plain form of the value to which the member says yes, and which it
	// ignores; empty if there is none. It is never given.
	Ignored string
	// ZeroStops says that 0 stops, until the next start, what the item is about: a process
	// that has or had it shows any other value, and does nothing.
	ZeroStops bool
}

// isStopping reports whether the value that a file has of an item is one until the next start.
func (i Item) isStopping(value leaf) bool {
	return i.ZeroStops && i.Kind.Normalize(i.Kind.scalar(value)) == i.Kind.zero()
}

// ignoresValue reports whether a member says yes to a value of an item, and ignores it.
func (i Item) ignoresValue(value Value) bool { return i.Ignored != "" && value.Plain == i.Ignored }

// Table is the closed list of such items of a component, in the one file that it
// has.
type Table struct {
	File  string
	Items []Item
	// HidesZero says that members do not show items that are 0, false or empty.
	HidesZero bool
}

// Item returns the item of a key.
func (t Table) Item(key string) (Item, bool) {
	at := slices.IndexFunc(t.Items, func(i Item) bool { return i.Key == key })
	if at < 0 {
		return Item{}, false
	}
	return t.Items[at], true
}

// AppliesOnline says whether members that run with some files can be given others while they
// run: if only items of the table differ, and none is taken away. What a member would have
// by default, only the member knows.
func (t Table) AppliesOnline(old, wanted map[string]string) verdict.Verdict {
	for _, name := range slices.Sorted(maps.Keys(mergeMaps(old, wanted))) {
		if name != t.File && old[name] != wanted[name] {
			return verdict.Refuse("file " + name)
		}
	}
	before, after := parseLeaves(old[t.File]), parseLeaves(wanted[t.File])
	if before == nil || after == nil {
		return verdict.Refuse("file " + t.File)
	}
	for _, key := range slices.Sorted(maps.Keys(mergeMaps(before, after))) {
		value, stays := after[key]
		was, had := before[key]
		item, known := t.Item(key)
		switch {
		case had && stays && reflect.DeepEqual(was, value):
		case !stays && was.isEmptyTable():
		case !stays:
			return verdict.Refuse(key + " is taken away")
		case !known:
			return verdict.Refuse(key + " is changed")
		case item.Kind.scalar(value) == "":
			return verdict.Refusef("%s is not a %s", key, item.Kind)
		case item.isStopping(was), item.isStopping(value):
			return verdict.Refuse(key + " is changed from or to 0")
		}
	}
	return verdict.Allow()
}

// Value is a value of an item: as it is sent to the member, and in the one form in
// which two spellings of it are the same.
type Value struct{ Text, Plain string }

// differingItems returns the items of the table that wanted files name and any of the
// others does not, or names with another value.
func (t Table) differingItems(others []map[string]string, wanted map[string]string) map[string]Value {
	out := map[string]Value{}
	values := t.values(wanted)
	for _, other := range others {
		had := t.values(other)
		for key, value := range values {
			if was, named := had[key]; !named || was.Plain != value.Plain {
				out[key] = value
			}
		}
	}
	return out
}

// droppedItems returns the items of the table that any of some files names and the
// wanted ones do not, with all the values that they had. One of which the wanted files have
// what no member starts with is not taken away, and a restart would bring nothing back.
func (t Table) droppedItems(others []map[string]string, wanted map[string]string) map[string][]Value {
	out := map[string][]Value{}
	leaves := parseLeaves(wanted[t.File])
	for _, other := range others {
		for key, value := range t.values(other) {
			if stays, named := leaves[key]; !named || stays.value == "" {
				out[key] = append(out[key], value)
			}
		}
	}
	return out
}

// values returns the items of the table that files name.
func (t Table) values(files map[string]string) map[string]Value {
	out := map[string]Value{}
	for key, leaf := range parseLeaves(files[t.File]) {
		if item, known := t.Item(key); known {
			if text := item.Kind.scalar(leaf); text != "" {
				out[key] = Value{Text: text, Plain: item.Kind.Normalize(text)}
			}
		}
	}
	return out
}

// leaf is a value of a file, and its Go type.
type leaf struct {
	kind  string
	value any
}

// isEmptyTable reports whether the value is a table without anything in it.
func (l leaf) isEmptyTable() bool {
	_, is := l.value.(map[string]any)
	return is
}

// parseLeaves returns the values of a TOML text by their keys, nil if it is none.
func parseLeaves(text string) map[string]leaf {
	tree, err := tomlconfig.Parse("file", text)
	if err != nil {
		return nil
	}
	out := map[string]leaf{}
	for key, value := range tree.Leaves() {
		out[key] = leaf{kind: fmt.Sprintf("%T", value), value: value}
	}
	return out
}

func mergeMaps[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, b)
	return out
}
