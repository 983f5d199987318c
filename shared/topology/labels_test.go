package topology_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/topology"
)

func TestStoreLabels(t *testing.T) {
	node := map[string]string{
		"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "eu-1", "kubernetes.io/hostname": "node-1",
		"rack": "r7", "topology.kubernetes.io/room": "b", "dc": "", "topology.kubernetes.io/dc": "d1", "example.com/row": "9",
	}
	cases := []struct {
		name      string
		node      map[string]string
		locations []string
		user      map[string]string
		want      map[string]string
	}{{
		name: "nothing is asked for and nothing is known",
		want: map[string]string{},
	}, {
		name:      "the short names are those of Kubernetes",
		node:      node,
		locations: []string{"region", "zone", "host"},
		want:      map[string]string{"region": "eu", "zone": "eu-1", "host": "node-1"},
	}, {
		name:      "any other location label is a node label of that name, else one with the topology prefix",
		node:      node,
		locations: []string{"rack", "room", "dc", "example.com/row", "topology.kubernetes.io/zone"},
		want: map[string]string{
			"rack": "r7", "room": "b", "dc": "d1", "example.com/row": "9", "topology.kubernetes.io/zone": "eu-1",
		},
	}, {
		name:      "a short name that the node carries itself serves where the usual label is missing",
		node:      map[string]string{"zone": "own"},
		locations: []string{"zone"},
		want:      map[string]string{"zone": "own"},
	}, {
		name:      "the usual label wins over the short name",
		node:      map[string]string{"zone": "own", "topology.kubernetes.io/zone": "usual"},
		locations: []string{"zone"},
		want:      map[string]string{"zone": "usual"},
	}, {
		name:      "what the node does not know is left out",
		node:      map[string]string{"kubernetes.io/hostname": "node-1"},
		locations: []string{"zone", "host"},
		want:      map[string]string{"host": "node-1"},
	}, {
		name:      "the user adds labels and fills in what the node does not know",
		node:      map[string]string{"kubernetes.io/hostname": "node-1"},
		locations: []string{"zone", "host"},
		user:      map[string]string{"disk": "nvme", "zone": "z9", "empty": ""},
		want:      map[string]string{"host": "node-1", "disk": "nvme", "zone": "z9"},
	}, {
		name:      "the user never overrides the node, however he spells it",
		node:      node,
		locations: []string{"zone"},
		user:      map[string]string{"zone": "wrong", "Zone": "wrong", "disk": "hdd"},
		want:      map[string]string{"zone": "eu-1", "disk": "hdd"},
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, topology.StoreLabels(c.node, c.locations, c.user))
		})
	}
}

func TestServerLabels(t *testing.T) {
	node := map[string]string{"topology.kubernetes.io/zone": "eu-1", "kubernetes.io/hostname": "node-1"}
	assert.Equal(t, map[string]string{"zone": "eu-1", "team": "a"},
		topology.ServerLabels(node, map[string]string{"team": "a", "zone": "x"}))
	assert.Equal(t, map[string]string{}, topology.ServerLabels(nil, nil))
}

func TestMissing(t *testing.T) {
	cases := []struct {
		name             string
		want, have, left map[string]string
	}{{
		name: "everything is there, beside a user's labels",
		want: map[string]string{"zone": "a"},
		have: map[string]string{"zone": "a", "engine": "tiflash"},
		left: map[string]string{},
	}, {
		name: "one is missing and one is wrong",
		want: map[string]string{"zone": "a", "host": "b", "disk": "c"},
		have: map[string]string{"zone": "x", "disk": "c"},
		left: map[string]string{"zone": "a", "host": "b"},
	}, {
		name: "PD keeps the case of the key that was there first",
		want: map[string]string{"zone": "a"},
		have: map[string]string{"Zone": "a"},
		left: map[string]string{},
	}, {
		name: "nothing is wanted",
		have: map[string]string{"zone": "a"},
		left: map[string]string{},
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.left, topology.MissingLabels(c.want, c.have))
		})
	}
}
