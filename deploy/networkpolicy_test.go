package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// S F7: the policies for databases select what the operators make, and open the ports
// that are meant.
func TestTheNetworkPoliciesOfDatabasesOpenTheListedPorts(t *testing.T) {
	text, err := os.ReadFile("components/networkpolicy/databases.yaml")
	require.NoError(t, err)
	ports, all := map[string][]int32{}, strings.Split(string(text), "---\n")
	require.Len(t, all, 4)
	for _, one := range all {
		var p networkingv1.NetworkPolicy
		require.NoError(t, yaml.UnmarshalStrict([]byte(one), &p))
		assert.Equal(t, v1alpha1.ManagedBy, p.Spec.PodSelector.MatchLabels[v1alpha1.LabelManagedBy], p.Name)
		assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, p.Spec.PolicyTypes)
		require.Len(t, p.Spec.Ingress, 1)
		require.NotEmpty(t, p.Spec.Ingress[0].From, "it is not open to everybody")
		for _, port := range p.Spec.Ingress[0].Ports {
			ports[p.Name] = append(ports[p.Name], port.Port.IntVal)
		}
		if p.Name == "tidb-groups-databases" {
			assert.Equal(t, v1alpha1.ManagedBy, p.Spec.Ingress[0].From[0].PodSelector.MatchLabels[v1alpha1.LabelManagedBy], "each other")
			assert.Equal(t, installed, p.Spec.Ingress[0].From[1].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"], "the operators")
		}
	}
	assert.Equal(t, map[string][]int32{
		"tidb-groups-mysql":      {v1alpha1.PortTiDB},
		"tidb-groups-tiproxy":    {v1alpha1.PortTiProxy},
		"tidb-groups-monitoring": {v1alpha1.PortPDClient, v1alpha1.PortTiKVStatus, v1alpha1.PortTiDBStatus, v1alpha1.PortTiFlashMetrics, v1alpha1.PortTiFlashProxyState, v1alpha1.PortTiProxyAPI, v1alpha1.PortTiCDC},
	}, ports)
}
