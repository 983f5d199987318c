package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A member that does not start with a file is never said to run with it.
func TestAFileWithWhichNoMemberStartsIsNotGiven(t *testing.T) {
	items := settings.Table{File: file, Items: []settings.Item{
		{Key: "n", Kind: settings.Number}, {Key: "f", Kind: settings.Fraction}, {Key: "s", Kind: settings.Size}, {Key: "d", Kind: settings.Duration}, {Key: "t", Kind: settings.Text},
	}}
	const before = "n = 4\nf = 0.5\ns = \"64MB\"\nd = \"10s\"\nt = \"zone\"\nnames = [\"a b\"]\n"
	for wanted, why := range map[string]string{
		"n = 5":             "",
		"n = 4.0":           "n is not a whole number",
		"n = 1e6":           "n is not a whole number",
		"f = 1":             "",
		"f = 1e6":           "",
		"f = \"1\"":         "f is not a number",
		"s = 67108864":      "",
		"s = 1e9":           "s is not a size",
		"s = true":          "s is not a size",
		"d = \"1m\"":        "",
		"d = 10000":         "d is not a duration",
		"t = \"host\"":      "",
		"t = 5":             "t is not a word",
		"t = \"\"":          "t is not a word",
		"names = [\"a b\"]": "",
		// As text, these lists look the same.
		"names = [\"a\", \"b\"]": "names is changed",
	} {
		key, _, _ := strings.Cut(wanted, " ")
		lines := slices.DeleteFunc(strings.Split(before, "\n"), func(line string) bool { return strings.HasPrefix(line, key+" ") })
		after := strings.Join(append(lines, wanted), "\n")
		assert.Equal(t, why, items.AppliesOnline(map[string]string{file: before}, map[string]string{file: after}).Reason(), wanted)
	}
}

// Two values are the same only if a member takes both for the same: else the change of the
// file reaches none, and they are said to run with it.
func TestWhatMembersTellApartIsNotTheSame(t *testing.T) {
	for _, c := range []struct {
		kind settings.Kind
		a, b string
		same bool
	}{
		{settings.Size, "64MB", "64MiB", true},
		{settings.Size, "1GB", "1024 MB", true},
		{settings.Size, "64MB", "64mb", false}, // TiKV knows no unit mb
		{settings.Size, "0.7KB", "716", true},  // what TiKV makes of it
		{settings.Size, "0.7GB", "751619276", true},
		{settings.Duration, "1m", "60s", true},
		{settings.Duration, "1m", "1M", false},
		{settings.Duration, "10s", "10000", false}, // TiKV wants a unit
		{settings.Text, "Zone", "zone", false},     // the name of a label, or of a file
		{settings.LogLevel, "INFO", "info", true},
	} {
		assert.Equal(t, c.same, c.kind.Normalize(c.a) == c.kind.Normalize(c.b), "%s %s and %s", c.kind, c.a, c.b)
	}
}

// An earlier version gave a member 4 for 4.0, and gave its Instance the file. A restart would end it.
func TestAMemberThatWasGivenABadFileIsLeftAlone(t *testing.T) {
	i := &v1alpha1.Instance{}
	i.Name = "db-0"
	judge := settings.Judge{Table: table(), Group: &v1alpha1.TiDBGroup{}, Running: map[string]observation.RunningConfig{"db-0": {Values: map[string]string{"a": "4", "b": "7"}}}}
	progress := judge.Progress(i, []map[string]string{{file: "a = 4"}}, map[string]string{file: "a = 4.0"})
	assert.Empty(t, progress.Stuck)
	assert.Equal(t, step.KindDone, progress.Outcome.Kind)
}

// A table without anything in it says nothing: what comes into it is all that changes.
func TestAnItemInATableThatWasEmptyIsGiven(t *testing.T) {
	items := settings.Table{File: file, Items: []settings.Item{{Key: "log.level", Kind: settings.LogLevel}}}
	for wanted, why := range map[string]string{
		"[log]\nlevel = \"warn\"\n": "",
		"":                          "",
		"[log]\nfile = \"x\"\n":     "log.file is changed",
		"log = 5\n":                 "log is changed",
		"[log]\n[other]\n":          "other is changed",
	} {
		assert.Equal(t, why, items.AppliesOnline(map[string]string{file: "[log]\n"}, map[string]string{file: wanted}).Reason(), wanted)
	}
}
