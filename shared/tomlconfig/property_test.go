package tomlconfig_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
)

// key draws a key, most of them bare, some that need quotes.
func key() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-c][a-z0-9_-]{0,3}`),
		rapid.StringMatching(`[a-b .\n"'é#=]{0,3}`),
	)
}

func scalar() *rapid.Generator[any] {
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 1000*rapid.Int64Range(0, 999_999).Draw(t, "microseconds")).
			In(time.FixedZone("", 3600*rapid.IntRange(-12, 12).Draw(t, "offset")))
	})
	return rapid.OneOf(
		rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(),
		rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), math.NaN(), 1, 1e300})).AsAny(),
		moment.AsAny(),
		rapid.Map(moment, func(m time.Time) toml.LocalDate {
			return toml.LocalDate{Year: m.Year(), Month: int(m.Month()), Day: m.Day()}
		}).AsAny(),
		rapid.Map(moment, func(m time.Time) toml.LocalTime {
			return toml.LocalTime{Hour: m.Hour(), Minute: m.Minute(), Second: m.Second()}
		}).AsAny(),
	)
}

func value(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalar()
	}
	return rapid.OneOf(scalar(), rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), table(depth-1).AsAny(),
		rapid.SliceOfN(table(depth-1).AsAny(), 0, 3).AsAny())
}

func table(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(key(), value(depth), 0, 4)
}

func tree() *rapid.Generator[tomlconfig.Tree] {
	return rapid.Map(table(3), func(m map[string]any) tomlconfig.Tree { return m })
}

func TestRenderingAndParsingKeepTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := tree().Draw(t, "tree")
		text, err := tomlconfig.Render(before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := tomlconfig.Parse(field, text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !tomlconfig.Equal(before, after) {
			t.Fatalf("%#v became %#v through\n%s", before, after, text)
		}
		again, err := tomlconfig.Render(after)
		if err != nil {
			t.Fatal(err)
		}
		if again != text {
			t.Fatalf("rendered again:\n%s\ninstead of\n%s", again, text)
		}
	})
}

// write writes a flat document of dotted keys in some order, with comments.
func write(t *rapid.T, label string, values map[string]int64) string {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out strings.Builder
	for _, k := range rapid.Permutation(keys).Draw(t, label) {
		if rapid.Bool().Draw(t, "comment") {
			out.WriteString("# " + k + " = nothing\n\n")
		}
		fmt.Fprintf(&out, "%s = %s # here\n", k, strconv.FormatInt(values[k], 10))
	}
	return out.String()
}

func TestOrderAndCommentsNeverMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.StringMatching(`[a-c]\.[a-c]\.[a-c]`), rapid.Int64()).Draw(t, "values")
		a, errA := tomlconfig.Parse(field, write(t, "first", values))
		b, errB := tomlconfig.Parse(field, write(t, "second", values))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !tomlconfig.Equal(a, b) {
			t.Fatalf("%v differs from %v", a, b)
		}
		for k, v := range values {
			changed := tomlconfig.Merge(a, map[string]any{k: v ^ 1})
			if tomlconfig.Equal(a, changed) || !tomlconfig.Equal(a, tomlconfig.Merge(changed, map[string]any{k: v})) {
				t.Fatalf("a changed %s is not seen", k)
			}
			if got := tomlconfig.Conflicts(a, []string{k}); len(got) != 1 {
				t.Fatalf("%s is not found", k)
			}
		}
	})
}
