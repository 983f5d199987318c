package architecture

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// missing are the behaviours of TiDB Operator that this suite does not have, and
// what it lacks. They are its debts: the test fails for one that is paid and still
// stands here.
var missing = map[string]string{}

// parity returns the ids that the suite has set itself (issue 4).
func parity() []string {
	var out []string
	add := func(kind string, from, to int) {
		for n := from; n <= to; n++ {
			out = append(out, fmt.Sprintf("%s-%02d", kind, n))
		}
	}
	add("PD", 1, 14)
	add("PD", 19, 20)
	add("PD", 22, 22)
	add("KV", 3, 26)
	add("DB", 3, 8)
	add("DB", 10, 11)
	add("DB", 18, 20)
	add("FL", 4, 7)
	add("VOL", 1, 2)
	add("VOL", 4, 6)
	add("GRP", 3, 11)
	add("OPS", 1, 2)
	return out
}

// named finds an id as a comment or the fields of a scenario write it, and as the
// names of tests do.
var named = regexp.MustCompile(`\b(PD|KV|DB|FL|VOL|GRP|OPS)-(\d\d)\b|(PD|KV|DB|FL|VOL|GRP|OPS)(\d\d)`)

func TestEveryBehaviourIsNamedByATestOrIsMissing(t *testing.T) {
	top, err := binaries.Root()
	require.NoError(t, err)
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != top {
			return filepath.SkipDir
		}
		test := strings.HasSuffix(path, "_test.go") && filepath.Base(path) != "parity_test.go"
		story := filepath.Dir(path) == filepath.Join(top, "e2e", "scenarios") && strings.HasSuffix(path, ".yaml")
		if !test && !story {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, id := range named.FindAllStringSubmatch(string(text), -1) {
			name := id[1] + id[3] + "-" + id[2] + id[4]
			found[name] = append(found[name], path)
		}
		return err
	}))
	for _, id := range parity() {
		if why := missing[id]; why != "" {
			assert.Empty(t, found[id], "%s is said to be missing (%s): take it off the list, or do not name it", id, why)
			continue
		}
		assert.NotEmpty(t, found[id], "no test names %s: name it where it is shown, or say what is missing", id)
	}
	for id := range missing {
		assert.True(t, slices.Contains(parity(), id), "%s is not on the list", id)
	}
	t.Logf("%d behaviours, %d missing", len(parity()), len(missing))
}
