package conformance_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets all tests run side by side: they mostly wait for etcd's own
// intervals, whatever the number of processors.
func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		os.Exit(runAsRunner())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
