package remedy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Text is a text of the operators that holds a command.
type Text struct {
	// File that it is in, from the root of the tree.
	File string
	// Format is the text as fmt takes it: what is put together of several parts has
	// %s for those that are no literals.
	Format string
}

// ListTexts returns every text with a command in apis, shared and operators of the tree
// at root, test kit and tests left out, in the order of files.
func ListTexts(root string) ([]Text, error) {
	var out []Text
	for _, module := range []string{"apis", "shared", "operators"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testkit" || entry.Name() == "testdata"):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, format := range findFormats(file) {
				out = append(out, Text{File: filepath.ToSlash(relative), Format: format})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find commands of messages: %w", err)
		}
	}
	return out, nil
}

// findFormats returns the texts of a file that hold a command.
func findFormats(file *ast.File) []string {
	var out []string
	ast.Inspect(file, func(node ast.Node) bool {
		expression, ok := node.(ast.Expr)
		if !ok {
			return true
		}
		format, ok := readLiteral(expression)
		if !ok {
			return true
		}
		if len(Commands(format)) > 0 {
			out = append(out, format)
		}
		return false
	})
	return out
}

// readLiteral returns a string literal, or several that are put together.
func readLiteral(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, first := readLiteral(e.X)
		right, second := readLiteral(e.Y)
		if !first && !second {
			return "", false
		}
		if !first {
			left = "%s"
		}
		if !second {
			right = "%s"
		}
		return left + right, true
	}
	return "", false
}

// verb is a verb of fmt.
var verb = regexp.MustCompile(`%(?:[-+# 0]*[0-9]*\.?[0-9]*[a-zA-Z]|%)`)

// Fill puts values in place of the verbs of a format.
func Fill(format string, value func(verb string) string) string {
	return verb.ReplaceAllStringFunc(format, func(found string) string {
		if found == "%%" {
			return "%"
		}
		return value(found)
	})
}

// CompilePattern returns what matches the messages that are made of a format.
func CompilePattern(format string) (*regexp.Regexp, error) {
	var out strings.Builder
	at := 0
	for _, found := range verb.FindAllStringIndex(format, -1) {
		out.WriteString(regexp.QuoteMeta(format[at:found[0]]))
		if format[found[0]:found[1]] == "%%" {
			out.WriteString("%")
		} else {
			out.WriteString(`[\s\S]*?`)
		}
		at = found[1]
	}
	out.WriteString(regexp.QuoteMeta(format[at:]))
	pattern, err := regexp.Compile(out.String())
	if err != nil {
		return nil, fmt.Errorf("read text %q: %w", format, err)
	}
	return pattern, nil
}
