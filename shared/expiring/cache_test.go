package expiring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatHasExpiredIsDroppedThoughItIsNeverAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(100, time.Hour)
		held := func() (n int) {
			c.values.RemoveAll(func(any) bool { n++; return false })
			return n
		}
		for n := range 50 {
			c.Add(n, "of a deleted object")
		}
		<-time.After(time.Hour / 2)
		c.Add("a", 1)
		assert.Equal(t, 51, held())
		<-time.After(time.Hour/2 + time.Second)
		c.Add("b", 2)
		assert.Equal(t, 2, held())
		value, known := c.Get("a")
		assert.True(t, known)
		assert.Equal(t, 1, value)
	})
}
