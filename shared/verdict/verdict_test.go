package verdict_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

func TestWhatNobodyHasJudgedIsRefused(t *testing.T) {
	var forgotten verdict.Verdict
	assert.False(t, forgotten.Allowed())
	assert.NotEmpty(t, forgotten.Reason())
	assert.NotEmpty(t, verdict.Refuse("").Reason())
}

func TestTheFirstThatRefusesCounts(t *testing.T) {
	yes, one, two := verdict.Allow(), verdict.Refuse("one"), verdict.Refusef("t%s", "wo")
	assert.Equal(t, yes, verdict.All(yes, yes))
	assert.Equal(t, one, verdict.All(yes, one, two))
	assert.Equal(t, two, verdict.All(two, one))
	assert.False(t, verdict.All(yes, verdict.Verdict{}).Allowed())
	assert.Empty(t, yes.Reason())
	assert.Equal(t, yes, verdict.Unless(""))
	assert.Equal(t, one, verdict.Unless("one"))
}

func TestAReasonIsGivenEvenIfItsTextIsEmpty(t *testing.T) {
	var none verdict.Reason
	assert.False(t, none.Given())
	assert.True(t, verdict.Because("").Given(), "it does not depend on the text")
	one := verdict.Becausef("o%s", "ne")
	assert.Equal(t, "one", one.Text())
	assert.Equal(t, one, verdict.Refuse("one").WhyNot())
	assert.Equal(t, none, verdict.Allow().WhyNot())
	assert.True(t, verdict.Verdict{}.WhyNot().Given(), "what was not judged is refused")
}
