package tomlconfig

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// What a document may be at most. TiKV's complete configuration has five levels,
// some 1,200 keys and 60 KiB. Without these bounds 128 KiB of dotted keys become
// gigabytes: each table is written down with its whole path.
const (
	// MaxLevels is how deep tables and arrays may lie in each other.
	MaxLevels = 16
	// MaxKeys is how many keys and tables there may be.
	MaxKeys = 10_000
	// MaxPath bounds the key of a value with all tables that it lies in, in bytes.
	MaxPath = 512
	// MaxBytes bounds a document, read or rendered; a ConfigMap holds 1 MiB.
	MaxBytes = 512 << 10
)

// bounds counts what a document would become, before anything is made of it.
type bounds struct {
	parser unstable.Parser
	keys   int
	// tables that a header has named, by their quoted path.
	tables map[string]bool
}

// checkBounds says what of a document is beyond the bounds, and how to fix it. What
// is no TOML is for the parser to refuse, which does so before it makes it.
func checkBounds(text string) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("it has %d bytes, at most %d are allowed: remove what is not needed", len(text), MaxBytes)
	}
	b := &bounds{tables: map[string]bool{}}
	b.parser.Reset([]byte(text))
	var header path
	for b.parser.NextExpression() {
		expression := b.parser.Expression()
		var err error
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			header, err = b.header(expression)
		case unstable.KeyValue:
			err = b.keyValue(header, expression)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path is where in a document something lies.
type path struct{ levels, bytes int }

// header counts the table that a header opens, and those on the way to it that no
// other header has opened.
func (b *bounds) header(expression *unstable.Node) (path, error) {
	var at path
	name := ""
	for keys := expression.Key(); keys.Next(); {
		name += fmt.Sprintf("%q.", keys.Node().Data)
		if !b.tables[name] || keys.IsLast() {
			b.tables[name] = true
			b.keys++
		}
		at.levels++
		at.bytes += len(keys.Node().Data)
		if err := b.check(at, keys.Node()); err != nil {
			return path{}, err
		}
	}
	return at, nil
}

// keyValue counts a key and what its value holds.
func (b *bounds) keyValue(at path, node *unstable.Node) error {
	for keys := node.Key(); keys.Next(); {
		b.keys++
		at.levels++
		at.bytes += len(keys.Node().Data)
		if err := b.check(at, keys.Node()); err != nil {
			return err
		}
	}
	return b.value(at, node.Value(), node)
}

// value counts the keys of tables in a value. about is the key that an error is about.
func (b *bounds) value(at path, node, about *unstable.Node) error {
	if node.Kind != unstable.Array && node.Kind != unstable.InlineTable {
		return nil
	}
	for children := node.Children(); children.Next(); {
		child := children.Node()
		if child.Kind == unstable.KeyValue {
			if err := b.keyValue(at, child); err != nil {
				return err
			}
			continue
		}
		below := path{levels: at.levels + 1, bytes: at.bytes}
		if child.Kind == unstable.InlineTable {
			b.keys++ // one of these may be written down with a header of its own
		}
		if child.Kind == unstable.InlineTable || child.Kind == unstable.Array {
			if err := b.check(below, firstKey(about)); err != nil {
				return err
			}
		}
		if err := b.value(below, child, about); err != nil {
			return err
		}
	}
	return nil
}

func firstKey(node *unstable.Node) *unstable.Node {
	keys := node.Key()
	keys.Next()
	return keys.Node()
}

// check says that a key is beyond the bounds.
func (b *bounds) check(at path, key *unstable.Node) error {
	switch {
	case at.levels > MaxLevels:
		return fmt.Errorf("line %d nests more than %d levels of tables and arrays: remove it", b.line(key), MaxLevels)
	case at.bytes > MaxPath:
		return fmt.Errorf("line %d has a key of more than %d bytes with the tables that it lies in: remove it", b.line(key), MaxPath)
	case b.keys > MaxKeys:
		return fmt.Errorf("line %d has key number %d, at most %d are allowed: remove what is not needed", b.line(key), b.keys, MaxKeys)
	}
	return nil
}

// line is where a key stands. The parser counts from the document's beginning: asked for each
// key, that takes a second for a large one.
func (b *bounds) line(key *unstable.Node) int { return b.parser.Shape(key.Raw).Start.Line }
