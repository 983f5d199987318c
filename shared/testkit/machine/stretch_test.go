package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAWaitIsStretchedOnABusyMachine(t *testing.T) {
	for processes, want := range map[float64]time.Duration{
		0.05: 5 * time.Second,
		1:    5 * time.Second,
		2.5:  12500 * time.Millisecond,
		45:   20 * time.Second,
	} {
		assert.Equal(t, want, stretchBy(5*time.Second, processes), processes)
	}
}
