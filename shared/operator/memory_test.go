package operator

import (
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestTheHeapFollowsTheMemoryLimitOfTheContainer(t *testing.T) {
	const before = 1 << 40 // what the runtime has of GOMEMLIMIT, if that is set
	fails := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	for name, c := range map[string]struct {
		container memlimit.Provider
		set       string // GOMEMLIMIT
		want      int64
		says      string
	}{
		"of an operator's own Deployment":               {memlimit.Limit(128 << 20), "", 107374182, `"the heap has a limit","MiB":102,"from":"the container's memory limit"`},
		"of the Deployment of all operators":            {memlimit.Limit(384 << 20), "", 322122547, `"MiB":307`},
		"of a Deployment whose limit was raised":        {memlimit.Limit(1 << 30), "", 858993459, `"MiB":819`},
		"GOMEMLIMIT goes first":                         {memlimit.Limit(128 << 20), "1TiB", before, `"MiB":1048576,"from":"GOMEMLIMIT"`},
		"a container without limit gives the heap none": {fails(memlimit.ErrNoLimit), "", math.MaxInt64, "the heap has no limit: neither the container nor GOMEMLIMIT sets one"},
		"outside of a container nothing changes":        {fails(memlimit.ErrNoCgroup), "", before, `cannot be read; GOMEMLIMIT sets one","reason":"failed to set GOMEMLIMIT: process is not in cgroup"`},
	} {
		t.Run(name, func(t *testing.T) {
			own := debug.SetMemoryLimit(before)
			t.Cleanup(func() { debug.SetMemoryLimit(own) })
			t.Setenv("GOMEMLIMIT", c.set) // which gives back at the end what was there
			if c.set == "" {
				require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
			}
			logged := &logBuffer{}
			limitHeap(zap.New(zap.WriteTo(logged)), c.container)
			assert.Equal(t, c.want, debug.SetMemoryLimit(-1))
			assert.Contains(t, logged.after(0), c.says)
			assert.Contains(t, logged.after(0), `"level":"info"`)
		})
	}
}
