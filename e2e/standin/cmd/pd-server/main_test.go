package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestFlags(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.toml")
	require.NoError(t, os.WriteFile(good, []byte("[schedule]\nmax-store-down-time = \"1h\"\n"), 0o600))
	bad := filepath.Join(t.TempDir(), "bad.toml")
	require.NoError(t, os.WriteFile(bad, []byte("[schedule]\nno-such-key = 1\n"), 0o600))
	for name, test := range map[string]struct {
		args []string
		out  string
		err  string
	}{
		"the version is printed": {[]string{"-V"}, "Release Version: v8.5.7", ""},
		"all flags of the real server are taken": {[]string{
			"--config-check", "--name=a", "--data-dir=/nowhere", "--client-urls=http://0.0.0.0:2379",
			"--advertise-client-urls=http://a:2379", "--peer-urls=http://0.0.0.0:2380", "--advertise-peer-urls=http://a:2380",
			"--initial-cluster=a=http://a:2380", "--config=" + good, "-L", "info", "--log-file=", "--cacert=", "--cert=", "--key=",
			"--metrics-addr=", "--force-new-cluster",
		}, "config check successful", ""},
		"an unknown flag is fatal":              {[]string{"--no-such-flag=1"}, "", "unknown flag"},
		"an argument is fatal":                  {[]string{"serve"}, "", "unknown command"},
		"an unknown key in the file is fatal":   {[]string{"--config-check", "--config=" + bad}, "", "undefined item: schedule.no-such-key"},
		"a missing file is fatal":               {[]string{"--config=/nowhere/pd.toml"}, "", "read configuration"},
		"both ways to find members are refused": {[]string{"--config-check", "--join=http://b:2379", "--initial-cluster=a=http://a:2380"}, "", "can not be provided at the same time"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(test.args...)
			assert.Contains(t, out, test.out)
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}
