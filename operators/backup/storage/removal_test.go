package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A large backup has thousands of files, which are deleted one by one.
func TestBR04HalfABackupIsRemovedHoweverLongThatTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, stop := context.WithCancel(t.Context())
		clean, cancel := boundRemoval(run)
		defer cancel()
		<-time.After(10 * cleanTimeout)
		require.NoError(t, clean.Err(), "nothing asks for the pod's end")
		stop()
		<-time.After(cleanTimeout / 2)
		require.NoError(t, clean.Err(), "the pod's grace is not over")
		<-time.After(cleanTimeout)
		require.Error(t, clean.Err(), "the pod is killed soon")

		late, cancel := boundRemoval(run)
		defer cancel()
		<-time.After(cleanTimeout / 2)
		require.NoError(t, late.Err())
		<-time.After(cleanTimeout)
		require.Error(t, late.Err())
	})
}
