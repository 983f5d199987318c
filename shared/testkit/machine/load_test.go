package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLoadIsTheAverageOfTheLastMinute(t *testing.T) {
	load, err := parseLoad("5.00 1.45 2.92 1/300 4711")
	require.NoError(t, err)
	assert.InDelta(t, 5, load, 0)

	_, err = parseLoad("what is this")
	assert.ErrorContains(t, err, `read the load "what is this"`)
}
