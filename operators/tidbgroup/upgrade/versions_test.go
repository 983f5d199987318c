package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/upgrade"
)

func TestDB08TiDBIsToldOfUpgradesBetweenVersionsThatSupportIt(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		want     bool
	}{
		"a patch of v7.1":                               {"v7.1.2", "v7.1.3", true},
		"a late v7.1 to a later release":                {"v7.1.6", "v7.5.0", true},
		"a late v7.1 to the first release that is told": {"v7.1.2", "v7.4.0", true},
		"from v7.4 on":                                  {"v7.4.0", "v7.5.1", true},
		"between long-term releases":                    {"v7.5.5", "v8.5.7", true},
		"a patch":                                       {"v8.5.7", "v8.5.8", true},
		"with something behind the numbers":             {"v8.5.7-debian", "v8.5.8-debian", true},
		"without a v":                                   {"8.5.7", "8.5.8", true},
		"to a pre-release of a later one":               {"v8.5.7", "v9.0.0-beta.1", true},
		"too old to be told":                            {"v6.5.0", "v7.5.0", false},
		"v7.1.0 does it unasked":                        {"v7.1.0", "v7.1.2", false},
		"v7.1.1 is not asked on the way to v7.4":        {"v7.1.1", "v7.4.0", false},
		"v7.1 to v7.2 is not supported":                 {"v7.1.2", "v7.2.0", false},
		"v7.1 to v7.3 is not supported":                 {"v7.1.5", "v7.3.0", false},
		"v7.3.0 is not told":                            {"v7.3.0", "v7.5.0", false},
		"the same version":                              {"v8.5.7", "v8.5.7", false},
		"another build of the same version":             {"v8.5.7", "v8.5.7-fix", false},
		"backwards":                                     {"v8.5.8", "v8.5.7", false},
		"from nothing":                                  {"", "v8.5.7", false},
		"to a tag that is no version":                   {"v8.5.7", "nightly", false},
		"from a tag that is no version":                 {"latest", "v8.5.7", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, upgrade.NeedsAnnouncement(c.from, c.to)) })
	}
}
