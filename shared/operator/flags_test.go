package operator

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		check func(*testing.T, Flags)
		says  string
	}{
		"by default all namespaces are watched":                {nil, func(t *testing.T, f Flags) { assert.Empty(t, f.namespaces()) }, ""},
		"by default there is no client-side limit on requests": {nil, func(t *testing.T, f Flags) { assert.Negative(t, f.ClientQPS) }, ""},
		"by default 32 objects are reconciled at once":         {nil, func(t *testing.T, f Flags) { assert.Equal(t, 32, f.Concurrency); assert.Equal(t, 8, f.perNamespace()) }, ""},
		"by default a reconcile takes a minute at most":        {nil, func(t *testing.T, f Flags) { assert.Equal(t, time.Minute, f.ReconcileTimeout) }, ""},
		"by default caches are filled anew every ten minutes":  {nil, func(t *testing.T, f Flags) { assert.Equal(t, 10*time.Minute, f.RelistPeriod) }, ""},
		"namespaces are separated by commas":                   {[]string{"--namespaces=a, b,,c"}, func(t *testing.T, f Flags) { assert.Equal(t, []string{"a", "b", "c"}, f.namespaces()) }, ""},
		"a limit on requests can be set": {[]string{"--kube-client-qps=20", "--kube-client-burst=30"}, func(t *testing.T, f Flags) {
			assert.InDelta(t, 20, f.ClientQPS, 0)
			assert.Equal(t, 30, f.ClientBurst)
		}, ""},
		"leader election can be turned on": {[]string{"--leader-elect", "--leader-election-namespace=x"}, func(t *testing.T, f Flags) {
			assert.True(t, f.LeaderElect)
			assert.Equal(t, "x", f.LeaderElectionNamespace)
		}, ""},
		"text at debug level can be logged":    {[]string{"--log-format=text", "--log-level=debug"}, func(t *testing.T, f Flags) { assert.Equal(t, "text", f.LogFormat) }, ""},
		"an unknown flag is refused":           {[]string{"--nope"}, nil, "flag provided but not defined: -nope"},
		"an argument is refused":               {[]string{"start"}, nil, `unexpected argument "start"`},
		"no concurrency is refused":            {[]string{"--concurrency=0"}, nil, "--concurrency is 0: it must be at least 1"},
		"an unknown log format is refused":     {[]string{"--log-format=xml"}, nil, `--log-format is "xml": it must be json or text`},
		"an unknown log level is refused":      {[]string{"--log-level=loud"}, nil, `--log-level is "loud": it must be debug, info or error`},
		"a duration without unit is refused":   {[]string{"--reconcile-timeout=5"}, nil, "reconcile-timeout"},
		"a negative period is refused":         {[]string{"--relist-period=-1s"}, nil, "--relist-period is -1s: it must not be negative"},
		"help is no failure but no run either": {[]string{"--help"}, nil, flag.ErrHelp.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("test", c.args)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			c.check(t, f)
		})
	}
}

func TestExitCodes(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for arg, code := range map[string]int{"--version": 0, "--help": 0, "--nope": 2, "--log-level=loud": 2} {
		os.Args = []string{"test-operator", arg}
		assert.Equal(t, code, Main(Definition{Name: "test"}), arg)
	}
	assert.NotEmpty(t, Version())
}
