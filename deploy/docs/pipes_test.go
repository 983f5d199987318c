package docs_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

// What a page has grep find in a log stands there in the words of the component.
func TestPipesOfThePagesFindWhatTheComponentsWrite(t *testing.T) {
	all := pages(t)
	for begins, c := range map[string]struct{ page, log, want string }{
		"kubectl logs basic-tikv-0 |": {
			"docs/tasks/lost-quorum.md",
			`[2026/11/30 04:00:00.000 +00:00] [INFO] [common.rs:282] ["connect to PD cluster"] [cluster_id=7478301922134567890] [thread_id=1]`,
			"cluster_id=7478301922134567890",
		},
		"for i in 0 1 2; do echo basic-pd-$i $(kubectl logs basic-pd-$i |": {
			"docs/tasks/lost-quorum.md",
			`[2026/11/30 04:00:00.000 +00:00] [INFO] [raft.go:929] ["71ca4cd0 [logterm: 3, index: 214] sent MsgPreVote request to 90dbc4ed at term 3"]`,
			"basic-pd-2 logterm: 3, index: 214",
		},
	} {
		line := ""
		for _, block := range docs.Blocks(all[c.page], "sh") {
			for one := range strings.Lines(block.Text) {
				if strings.HasPrefix(one, begins) {
					line = one
				}
			}
		}
		require.NotEmpty(t, line, begins)
		run := exec.CommandContext(t.Context(), "bash", "-c", "kubectl() { echo \"$LOG\"; }\n"+line) //nolint:gosec // a page of the repository
		run.Env = append(run.Environ(), "LOG="+c.log)
		out, err := run.Output()
		require.NoError(t, err, line)
		assert.Contains(t, string(out), c.want, line)
	}
}

// TiDB answers requests about an upgrade only if they are posts, also the one that changes nothing.
func TestRequestsAboutAnUpgradeArePosts(t *testing.T) {
	found := regexp.MustCompile(`curl .*?/upgrade/\w+`).FindAllString(pages(t)["docs/tasks/update.md"], -1)
	require.Len(t, found, 2)
	for _, request := range found {
		assert.Contains(t, request, " -X POST ")
	}
}
