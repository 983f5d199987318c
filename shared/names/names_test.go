package names_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/names"
)

func TestNamesAreThoseOfTiDBOperator(t *testing.T) {
	assert.Equal(t, "basic-pd", names.Group("basic", "pd", ""))
	assert.Equal(t, "basic-tikv-hot", names.Group("basic", "tikv", "hot"))
	assert.Equal(t, "basic-tikv-2", names.Instance("basic-tikv", 2))
	assert.Equal(t, "tikv-basic-tikv-2", names.Claim("tikv", "basic-tikv-2"))
	assert.Equal(t, "basic-pd-peer", names.PeerService("basic-pd"))
	assert.Equal(t, "basic-pd-0.basic-pd-peer.prod.svc", names.PodHost("basic-pd-0", "basic-pd", "prod", ""))
	assert.Equal(t, "[2001:db8::1]:4000", names.HostPort("2001:db8::1", 4000))
	assert.Equal(t, "http://basic-pd.prod.svc:2379", names.PDURL("http", "basic-pd", "prod", "", 2379))
	assert.Equal(t, "basic-pd-0.basic-pd-peer.prod.svc.cluster.local", names.PodHost("basic-pd-0", "basic-pd", "prod", "cluster.local"))
	assert.Equal(t, "http://basic-pd.prod.svc.cluster.local:2379", names.PDURL("http", "basic-pd", "prod", "cluster.local", 2379))
}

func TestPodOfHost(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		pod     string
		ok      bool
	}{
		"an address with a port":                         {"basic-tikv-1.basic-tikv-peer.prod.svc:20160", "basic-tikv-1", true},
		"a URL":                                          {"http://basic-tikv-1.basic-tikv-peer.prod.svc:2379", "basic-tikv-1", true},
		"a name with the cluster's domain":               {"basic-tikv-1.basic-tikv-peer.prod.svc.cluster.local:20160", "basic-tikv-1", true},
		"a pod of another namespace is not ours":         {"basic-tikv-1.basic-tikv-peer.test.svc:20160", "", false},
		"a pod of another group is not ours":             {"basic-tikv-x-1.basic-tikv-x-peer.prod.svc:20160", "", false},
		"a namespace that only begins alike is not ours": {"basic-tikv-1.basic-tikv-peer.prod.svcx:20160", "", false},
		"an IP address is not ours":                      {"10.0.0.1:20160", "", false},
		"an IPv6 address is not ours":                    {"[fd00::1]:20160", "", false},
		"the URL of an IPv6 address is not ours":         {"http://[fd00::1]:2379", "", false},
		"an IPv6 address with dots is not ours":          {"[::ffff:10.0.0.1]:20160", "", false},
		"an empty address is not ours":                   {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod, ok := names.PodOfHost(c.address, "basic-tikv", "prod")
			assert.Equal(t, c.ok, ok)
			assert.Equal(t, c.pod, pod)
		})
	}
}
