package architecture

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// questions are the words with which a function begins that reports whether something is so.
// Others are verbs in the third person, as in ownsGroup.
func questions() []string {
	return []string{"is", "has", "can", "may", "must", "are", "was", "did", "have", "needs", "equal", "differ", "try", "permits"}
}

// knownNames are of one word that everybody knows, or of an interface that is not ours.
func knownNames() []string {
	return []string{"main", "init", "run", "parse", "Equal", "Enabled", "NeedLeaderElection", "Pause"}
}

// A function is named by a verb and its object, one that reports whether something is so by a
// question.
func TestFunctionsAreNamedByVerbAndObject(t *testing.T) {
	seen := 0
	eachFunction(t, isWrittenCode, func(path string, _ *token.FileSet, f *ast.FuncDecl) {
		if slices.Contains(knownNames(), f.Name.Name) {
			return
		}
		seen++
		words := splitName(f.Name.Name)
		if f.Recv == nil && !f.Name.IsExported() {
			assert.Greater(t, len(words), 1, "%s: the function %s is one word: name it by a verb and its object", filepath.ToSlash(path), f.Name.Name)
		}
		checkBoolName(t, path, f)
	})
	require.Greater(t, seen, 1000)
}

// A helper of a test may be of one word, for it is read in the same file. One that reports whether
// something is so is named like all others.
func TestHelpersOfTestsThatReturnABoolAreNamedByAQuestion(t *testing.T) {
	seen := 0
	eachFunction(t, isOfTest, func(path string, _ *token.FileSet, f *ast.FuncDecl) {
		seen++
		checkBoolName(t, path, f)
	})
	require.Greater(t, seen, 1000)
}

// checkBoolName fails a test if a function returns a bool and has another name than such a one has.
func checkBoolName(t *testing.T, path string, f *ast.FuncDecl) {
	t.Helper()
	first := splitName(f.Name.Name)[0]
	assert.True(t, !returnsBool(f) || slices.Contains(questions(), first) || strings.HasSuffix(first, "s"),
		"%s: %s returns a bool: name it by a question, as isReady, or a statement, as ownsClaim", filepath.ToSlash(path), f.Name.Name)
}

// splitName are the words of a name in lower case: maxSurge are max and surge.
func splitName(name string) []string {
	var words []string
	begin := 0
	runes := []rune(name)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) {
			words = append(words, strings.ToLower(string(runes[begin:i])))
			begin = i
		}
	}
	return words
}

// returnsBool reports whether a function returns a bool alone.
func returnsBool(f *ast.FuncDecl) bool {
	if f.Type.Results.NumFields() != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "bool"
}
