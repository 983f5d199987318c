package result

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBR04AResultIsReadAsItWasWritten(t *testing.T) {
	r := Result{Reason: "StorageFull", Message: strings.Repeat("ü", 5000), Begun: true, Bytes: 7, TSO: "42"}
	text, err := r.Encode()
	require.NoError(t, err)
	got, is := Read(string(text))
	require.True(t, is)
	assert.Equal(t, OneLine(r.Message), got.Message)
	got.Message = r.Message
	assert.Equal(t, r, got)
}

func TestBR04TheOutputOfAPodIsBounded(t *testing.T) {
	for _, text := range []string{"", "hello", `{"bytes":-1}`, `{"tso":"4 2"}`, `{"tso":"123456789012345678901"}`, `{"message":"` + strings.Repeat("x", 5000) + `"}`} {
		_, is := Read(text)
		assert.False(t, is, text)
	}
	got, is := Read(`{"message":"a\nb\u0000"}`)
	require.True(t, is)
	assert.Equal(t, "a b\x00", got.Message, "the writer of conditions replaces what a terminal would obey")
}
