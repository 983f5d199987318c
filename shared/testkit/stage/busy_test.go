package stage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAWaitIsStretchedOnABusyMachine(t *testing.T) {
	for average, want := range map[string]time.Duration{
		"0.10 1.45 2.92 1/300 4711":  5 * time.Second,
		"2.00 1.45 2.92 1/300 4711":  5 * time.Second,
		"5.00 1.45 2.92 1/300 4711":  12500 * time.Millisecond,
		"90.00 1.45 2.92 1/300 4711": 20 * time.Second,
		"what is this":               5 * time.Second,
	} {
		assert.Equal(t, want, stretchBy(5*time.Second, average, 2), average)
	}
}
