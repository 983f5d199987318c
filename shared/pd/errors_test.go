package pd_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

func TestAPDThatDoesNotAnswerIsNamedWithTheCause(t *testing.T) {
	err := &pd.Unreachable{URL: "http://x:2379", Cause: io.ErrUnexpectedEOF}
	assert.EqualError(t, err, "PD at http://x:2379 does not answer: the connection was closed")
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestEverySpellingOfNoLeaderIsKnown(t *testing.T) {
	for _, answer := range []pd.Refused{
		{Call: "members", Status: 500, Body: "[PD:apiutil:ErrRedirect]redirect failed"},
		{Call: "members", Status: 503, Body: "no leader"},
		{Call: "rules", Status: 500, Body: "redirect to not leader"},
		{Call: "rules", Status: 500, Body: "[PD:apiutil:ErrRedirectToNotLeader]redirect to not leader"},
		{Call: "members", Status: 503, Body: "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader"},
	} {
		assert.ErrorIs(t, &answer, pd.ErrNoLeader)
	}
	assert.NotErrorIs(t, &pd.Refused{Call: "rules", Status: 500, Body: "region 7 has no leader"}, pd.ErrNoLeader)
}
