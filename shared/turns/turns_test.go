package turns_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/turns"
)

func TestATurnHasAPlaceUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns.New(50, 1)
		wait := func(failed bool) (func(), error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return all.Wait(ctx, true, func() bool { return failed })
		}
		end, err := wait(false)
		require.NoError(t, err)
		_, err = wait(false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "wait for a place")
		_, err = wait(true)
		require.NoError(t, err, "what fails has places of its own")
		end()
		_, err = wait(false)
		require.NoError(t, err)
	})
}

func TestTurnsPerSecondAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, began := turns.New(2, 100), time.Now()
		begin := func(moving bool) {
			end, err := all.Wait(t.Context(), moving, func() bool { return false })
			require.NoError(t, err)
			end()
		}
		for range 6 {
			begin(true)
		}
		assert.InDelta(t, 2, time.Since(began).Seconds(), 0.1, "two at once in the beginning, then two in a second")
		begin(false)
		assert.InDelta(t, 2, time.Since(began).Seconds(), 0.1, "what is steady has turns of its own")
	})
}
