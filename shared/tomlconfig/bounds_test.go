package tomlconfig_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

// longest is what the CRDs allow in spec.config.
const longest = 131072

// fill repeats lines, made of their number, up to the longest text.
func fill(head string, line func(n int) string) string {
	var out strings.Builder
	out.WriteString(head)
	for n := 0; ; n++ {
		next := line(n)
		if out.Len()+len(next) > longest {
			return out.String()
		}
		out.WriteString(next)
	}
}

// bombs are texts that a CRD lets pass and that become far more than they are, with
// what is said of them, nothing if they are harmless as they are.
func bombs() map[string]struct{ text, message string } {
	long := strings.Repeat("k", longest/2)
	return map[string]struct{ text, message string }{
		"dotted key of 4,000 levels": {strings.Repeat("a.", 4000) + "a = 1",
			"spec.config: line 1 nests more than 16 levels of tables and arrays: remove it"},
		"dotted key of 65,000 levels": {strings.Repeat("a.", 65_000) + "a = 1",
			"spec.config: line 1 nests more than 16 levels of tables and arrays: remove it"},
		"header of 65,000 levels": {"x = 1\n[" + strings.Repeat("a.", 65_000) + "a]",
			"spec.config: line 2 nests more than 16 levels of tables and arrays: remove it"},
		"arrays in each other": {"x = 1\n\na = " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
			"spec.config: line 3 nests more than 16 levels of tables and arrays: remove it"},
		"inline tables in each other": {strings.Repeat("a = {", 9_000) + strings.Repeat("}", 9_000),
			"spec.config: line 1 nests more than 16 levels of tables and arrays: remove it"},
		"a long name with many tables below": {fill("", func(n int) string { return fmt.Sprintf("[%s.t%d]\n", long[:200*(1+n%300)], n) }),
			"spec.config: line 3 has a key of more than 512 bytes with the tables that it lies in: remove it"},
		"many keys": {fill("", func(n int) string { return fmt.Sprintf("k%d=1\n", n) }),
			"spec.config: line 10001 has key number 10001, at most 10000 are allowed: remove what is not needed"},
		"many tables": {fill("", func(n int) string { return fmt.Sprintf("[t%d]\n", n) }),
			"spec.config: line 10001 has key number 10001, at most 10000 are allowed: remove what is not needed"},
		"many tables, 15 levels each": {fill("", func(n int) string { return fmt.Sprintf("[t%d.a.a.a.a.a.a.a.a.a.a.a.a.a.a]\n", n) }),
			"spec.config: line 667 has key number 10001, at most 10000 are allowed: remove what is not needed"},
		"many inline tables": {"a = [" + strings.Repeat("{a={}},", longest/8) + "]",
			"spec.config: line 1 has key number 10001, at most 10000 are allowed: remove what is not needed"},
		"many empty inline tables": {"a = [" + strings.Repeat("{},", longest/4) + "]",
			"spec.config: line 1 has key number 10001, at most 10000 are allowed: remove what is not needed"},
		"many tables below a name that needs escapes": {
			fill("", func(n int) string { return fmt.Sprintf("[\"%s\".t%d]\n", strings.Repeat(`\u0001`, 500), n) }), ""},
		"many numbers":        {"a = [" + strings.Repeat("1,", longest/2-8) + "]", ""},
		"many arrays":         {"a = [" + strings.Repeat("[],", longest/3-8) + "]", ""},
		"many strings":        {"a = [" + strings.Repeat("'',", longest/3-8) + "]", ""},
		"a string of escapes": {`a = "` + strings.Repeat(`\u0001`, longest/6-8) + `"`, ""},
	}
}

// allocated returns how many bytes a piece of work takes at most: what it allocates
// in all, live or not.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// P5, P10: an operator has 128 MiB for everybody; one object of one namespace must
// not take them.
func TestP10ParsingBoundsTheSizeOfTheResult(t *testing.T) {
	for name, bomb := range bombs() {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(bomb.text), longest)
			var err error
			took := allocated(func() {
				var tree tomlconfig.Tree
				if tree, err = tomlconfig.Parse(field, bomb.text); err == nil {
					_, err = tomlconfig.Render(tomlconfig.Merge(tree, map[string]any{"owned.key": 1}))
				}
			})
			assert.LessOrEqual(t, took>>20, uint64(64), "MiB")
			if bomb.message == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, bomb.message)
			}
		})
	}
}

func TestATreeThatIsTooLongIsNotRendered(t *testing.T) {
	path := strings.Repeat("p", 500)
	tree := parse(t, fill("", func(n int) string { return fmt.Sprintf("[%s.t%d]\n", path, n) }))
	text, err := tomlconfig.Render(tree)
	require.NoError(t, err)
	require.Greater(t, len(text), longest/2)

	below := map[string]any{}
	for n := range 2000 {
		below[fmt.Sprintf("t%d", n)] = map[string]any{"a": 1}
	}
	_, err = tomlconfig.Render(tomlconfig.Tree{path: below})
	require.ErrorContains(t, err, "with the whole path of every table it has ")
	require.ErrorContains(t, err, " bytes, at most 524288 are allowed: remove tables that are not needed")

	_, err = tomlconfig.Parse(field, strings.Repeat("#", tomlconfig.MaxBytes+1))
	require.EqualError(t, err, "spec.config: it has 524289 bytes, at most 524288 are allowed: remove what is not needed")
}

// What was read can be read again when it was rendered, as the settings that are
// given to living servers do with the files of the members.
func TestRenderedTextStaysWithinTheBounds(t *testing.T) {
	for _, text := range []string{
		"a = [" + strings.Repeat("{a={}},", 3000) + "]",
		fill("", func(n int) string {
			if n > 660 {
				return strings.Repeat("#", longest)
			}
			return fmt.Sprintf("[t%d.a.a.a.a.a.a.a.a.a.a.a.a.a.a]\n", n)
		}),
		strings.Repeat("[[a]]\nb.c.d = {e = [{f = 1}]}\n", 1000),
	} {
		rendered, err := tomlconfig.Render(parse(t, text))
		require.NoError(t, err)
		parse(t, rendered)
	}
}
