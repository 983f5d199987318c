package tomlconfig

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Tree is a TOML document: tables are map[string]any, arrays are []any, and
// values are string, int64, float64, bool, time.Time or one of the local date
// and time types of go-toml. The zero Tree is an empty document.
type Tree map[string]any

// Parse reads the TOML that a user wrote into a field of a spec. The error
// names the field, line and column, and what to do. What is beyond MaxLevels,
// MaxKeys, MaxPath or MaxBytes is refused before anything is made of it.
func Parse(field, text string) (Tree, error) {
	if err := checkBounds(text); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	root := map[string]any{}
	err := toml.Unmarshal([]byte(text), &root)
	if err == nil {
		return Tree(root), nil
	}
	message := strings.TrimPrefix(err.Error(), "toml: ")
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		return nil, fmt.Errorf("%s: not valid TOML at line %d, column %d: %s: correct it there", field, line, column, message)
	}
	return nil, fmt.Errorf("%s: not valid TOML: %s: correct it", field, message)
}

// Render writes a Tree down. The same Tree always gives the same text: keys
// are sorted. The error means that the Tree holds what TOML cannot say, or that
// the text would be longer than MaxBytes.
func Render(tree Tree) (string, error) {
	text, err := toml.Marshal(map[string]any(tree))
	if err != nil {
		return "", fmt.Errorf("render TOML: %w", err)
	}
	if len(text) > MaxBytes {
		return "", fmt.Errorf("with the whole path of every table it has %d bytes, at most %d are allowed: remove tables that are not needed", len(text), MaxBytes)
	}
	return string(text), nil
}

// Conflicts returns those of the owned keys that a Tree sets, in their order.
// An owned key names a value or a whole table; its parts are joined by dots
// and quoted as in TOML where they contain dots themselves. A value in the
// place of a table that an owned key goes through conflicts as well. Letters
// are compared without case, as some of the servers do.
func Conflicts(tree Tree, owned []string) []string {
	var conflicts []string
	for _, key := range owned {
		if setsKey(tree, splitKey(key)) {
			conflicts = append(conflicts, key)
		}
	}
	return conflicts
}

func setsKey(value any, path []string) bool {
	table, ok := asTable(value)
	if !ok || len(path) == 0 {
		return true
	}
	for name, below := range table {
		if strings.EqualFold(name, path[0]) && setsKey(below, path[1:]) {
			return true
		}
	}
	return false
}

// OwnedMessage tells the user that a key of his is not his to set.
func OwnedMessage(field, key string) string {
	return fmt.Sprintf("%s: key %q is set by the operator: remove it", field, key)
}

// Check returns an error that names the first of the owned keys that a Tree
// sets, nil if there is none.
func Check(field string, tree Tree, owned []string) error {
	if conflicts := Conflicts(tree, owned); len(conflicts) > 0 {
		return errors.New(OwnedMessage(field, conflicts[0]))
	}
	return nil
}

// ParseUser parses the text of a user's field. problems are what is wrong with it: that it
// is no TOML, and then the Tree is nil, or keys that it sets and that are owned.
func ParseUser(field, text string, owned []string) (user Tree, problems []string) {
	user, err := Parse(field, text)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, key := range Conflicts(user, owned) {
		problems = append(problems, OwnedMessage(field, key))
	}
	return user, problems
}

// File renders the configuration file of a component: the text of the user's spec.config
// with the operator's values put in, if it has any. owned are the keys that a user may not
// set. There is no file if it cannot be rendered.
func File(name, text string, owned []string, operator map[string]any) (files map[string]string, problems []string) {
	const field = "spec.config"
	user, problems := ParseUser(field, text, owned)
	if user == nil {
		return nil, problems
	}
	if operator != nil {
		user = Merge(user, operator)
	}
	rendered, err := Render(user)
	if err != nil {
		return nil, append(problems, field+": "+err.Error())
	}
	return map[string]string{name: rendered}, problems
}

// Merge returns the user's Tree with the operator's values put in; these win.
// The operator's keys may be dotted, and its values tables, which are merged
// key by key, arrays or scalars of any Go type that TOML can say. Neither
// argument is changed.
func Merge(user Tree, operator map[string]any) Tree {
	merged, ok := normalizeValue(map[string]any(user)).(map[string]any)
	if !ok || merged == nil {
		merged = map[string]any{}
	}
	for _, key := range sortedKeys(operator) {
		setValue(merged, splitKey(key), normalizeValue(operator[key]))
	}
	return Tree(merged)
}

// setValue sets a value below a table and makes the tables on the way.
func setValue(table map[string]any, path []string, value any) {
	name := path[0] //nolint:gosec // no path is empty
	if len(path) > 1 {
		below, ok := table[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			table[name] = below
		}
		setValue(below, path[1:], value)
		return
	}
	from, isTable := value.(map[string]any)
	into, wasTable := table[name].(map[string]any)
	if !isTable || !wasTable {
		table[name] = value
		return
	}
	for key, below := range from {
		setValue(into, []string{key}, below)
	}
}

// Leaves returns the values of a Tree by their keys, with dots between the parts; a
// part that has dots itself is quoted. An empty table is a value, too.
func (t Tree) Leaves() map[string]any {
	out := map[string]any{}
	collectLeaves(out, "", map[string]any(t))
	return out
}

func collectLeaves(into map[string]any, path string, value any) {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 && path != "" {
		into[path] = value
		return
	}
	for key, below := range table {
		if strings.Contains(key, ".") {
			key = `"` + key + `"`
		}
		collectLeaves(into, strings.TrimPrefix(path+"."+key, "."), below)
	}
}

// Equal reports whether two Trees mean the same. Numbers with and without a
// fraction differ, as they do in TOML.
func Equal(a, b Tree) bool {
	return equalValues(normalizeValue(map[string]any(a)), normalizeValue(map[string]any(b)))
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(a) != len(other) {
			return false
		}
		for key, value := range a {
			if below, ok := other[key]; !ok || !equalValues(value, below) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equalValues)
	case time.Time:
		other, ok := b.(time.Time)
		return ok && a.Equal(other)
	case float64:
		other, ok := b.(float64)
		return ok && (a == other || math.IsNaN(a) && math.IsNaN(other))
	}
	return reflect.DeepEqual(a, b)
}

// normalizeValue returns a deep copy in the types that Parse gives.
func normalizeValue(value any) any {
	switch value.(type) {
	case time.Time, toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return value
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.CanInt():
		return v.Int()
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()) //nolint:gosec // compared above
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		table := make(map[string]any, v.Len())
		for key, below := range v.Seq2() {
			table[key.String()] = normalizeValue(below.Interface())
		}
		return table
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		array := make([]any, v.Len())
		for i := range array {
			array[i] = normalizeValue(v.Index(i).Interface())
		}
		return array
	}
	return value
}

func asTable(value any) (map[string]any, bool) {
	switch t := value.(type) {
	case Tree:
		return t, true
	case map[string]any:
		return t, true
	}
	return nil, false
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// splitKey takes a key apart at the dots outside of quotes. What is not a key of
// TOML is one part: the operators' own keys are tested, not checked.
func splitKey(key string) []string {
	if bare := strings.Split(key, "."); !slices.ContainsFunc(bare, isNoBareKey) {
		return bare // nearly always, and much cheaper than a parser
	}
	parser := unstable.Parser{}
	parser.Reset([]byte(key + " = 0"))
	if !parser.NextExpression() || parser.Expression().Kind != unstable.KeyValue {
		return []string{key}
	}
	var parts []string
	for keys := parser.Expression().Key(); keys.Next(); {
		parts = append(parts, string(keys.Node().Data))
	}
	return parts
}

// isNoBareKey reports whether a part of a key has to be in quotes.
func isNoBareKey(part string) bool {
	return part == "" || strings.ContainsFunc(part, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
