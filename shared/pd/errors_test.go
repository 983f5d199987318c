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
