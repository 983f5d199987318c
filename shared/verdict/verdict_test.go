package verdict_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

func TestAVerdictThatWasNotSetRefuses(t *testing.T) {
	var forgotten verdict.Verdict
	assert.False(t, forgotten.IsAllowed())
	assert.NotEmpty(t, forgotten.Reason())
	assert.NotEmpty(t, verdict.Refuse("").Reason())
}

func TestTheFirstRefusalWins(t *testing.T) {
	yes, one, two := verdict.Allow(), verdict.Refuse("one"), verdict.Refusef("t%s", "wo")
	assert.Equal(t, yes, verdict.RequireAll(yes, yes))
	assert.Equal(t, one, verdict.RequireAll(yes, one, two))
	assert.Equal(t, two, verdict.RequireAll(two, one))
	assert.False(t, verdict.RequireAll(yes, verdict.Verdict{}).IsAllowed())
	assert.Empty(t, yes.Reason())
	assert.Equal(t, yes, verdict.RefuseIf(""))
	assert.Equal(t, one, verdict.RefuseIf("one"))
}

func TestARefusalWithoutATextHasAReason(t *testing.T) {
	var none verdict.Reason
	assert.False(t, none.IsGiven())
	assert.True(t, verdict.NewReason("").IsGiven(), "it does not depend on the text")
	one := verdict.NewReasonf("o%s", "ne")
	assert.Equal(t, "one", one.Text())
	assert.Equal(t, one, verdict.Refuse("one").WhyNot())
	assert.Equal(t, none, verdict.Allow().WhyNot())
	assert.True(t, verdict.Verdict{}.WhyNot().IsGiven(), "what was not judged is refused")
}
