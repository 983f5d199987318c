package localcluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
)

// Configuration files are JSON, which is YAML too, made from these maps: the
// Kubernetes config types live in modules that would tie this one to a version.
type object = map[string]any

func apiServerURL() string { return fmt.Sprintf("https://%s:%d", gateway, apiPort) }

// kubeconfigFor renders a kubeconfig with everything inline, so that it can be
// copied anywhere.
func (l layout) kubeconfigFor(cert string) ([]byte, error) {
	data := map[string]string{}
	for key, file := range map[string]string{"ca": "ca.crt", "cert": cert + ".crt", "key": cert + ".key"} {
		content, err := os.ReadFile(l.pki(file))
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		data[key] = base64.StdEncoding.EncodeToString(content)
	}
	const name = "tidb-groups-local"
	return encodeJSON(object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": object{
			"server": apiServerURL(), "certificate-authority-data": data["ca"],
		}}},
		"users": []object{{"name": name, "user": object{
			"client-certificate-data": data["cert"], "client-key-data": data["key"],
		}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	})
}

func encodeJSON(v any) ([]byte, error) {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return append(content, '\n'), nil
}

// leaseSeconds is how long a kubelet's lease is; it is renewed at a quarter of
// that. Together with the controller manager's grace period it decides how soon
// a lost node is noticed.
const leaseSeconds = 8

func (l layout) kubeletConfig(n Node) object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": n.Address, "port": 10250, "readOnlyPort": 0,
		"healthzBindAddress": n.Address, "healthzPort": 10248,
		"tlsCertFile":       l.pki(n.Name + "-server.crt"),
		"tlsPrivateKeyFile": l.pki(n.Name + "-server.key"),
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": l.pki("ca.crt")},
		},
		"authorization":            object{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + l.socket(n.Name),
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               nodeCgroup(n.Name),
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"enforceNodeAllocatable":   []string{},
		// The kubelet's disk is its own. The rest is above zero because zero is
		// refused, and small because the machine is shared with three nodes and
		// whatever else it does.
		"evictionHard": object{"memory.available": "50Mi", "nodefs.available": diskLow, "imagefs.available": imagesLow},
		// Five minutes if it is not said.
		"evictionPressureTransitionPeriod": "5s",
		// Images come from archives, so a collected one could not be pulled again.
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"clusterDomain":               "cluster.local",
		"clusterDNS":                  []string{serviceDNS},
		"resolvConf":                  l.config("resolv.conf"),
		"podLogsDir":                  l.nodeFile(n.Name, "pod-logs"),
		"volumePluginDir":             l.nodeFile(n.Name, "volume-plugins"),
		"makeIPTablesUtilChains":      false,
		// A sandboxed root may lack the right to lower it.
		"oomScoreAdj":               0,
		"nodeLeaseDurationSeconds":  leaseSeconds,
		"nodeStatusUpdateFrequency": "4s",
		"nodeStatusReportFrequency": "1m",
		"syncFrequency":             "15s",
		"kubeAPIQPS":                200, "kubeAPIBurst": 400,
		"eventRecordQPS": 100, "eventBurst": 200,
		"registerNode": true,
	}
}

func (l layout) schedulerConfig() object {
	return object{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"clientConnection": object{"kubeconfig": l.config("scheduler.kubeconfig"), "qps": 500, "burst": 1000},
		"leaderElection":   object{"leaderElect": false},
	}
}

func (l layout) proxyConfig() object {
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode":             "nftables",
		"clientConnection": object{"kubeconfig": l.config("proxy.kubeconfig")},
		"clusterCIDR":      podRange,
		"detectLocalMode":  "ClusterCIDR",
		// One proxy serves the whole machine, as if it were on the first node.
		"hostnameOverride":   listNodes()[0].Name,
		"bindAddress":        listNodes()[0].Address,
		"healthzBindAddress": gateway + ":10256",
		"metricsBindAddress": gateway + ":10249",
		"oomScoreAdj":        0,
		// Zero leaves the host's connection tracking settings as they are.
		"conntrack": object{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"nftables":  object{"syncPeriod": "30s", "minSyncPeriod": "50ms"},
	}
}

func (l layout) cniConfig() object {
	return object{
		"cniVersion": "1.0.0", "name": cniNetwork,
		"plugins": []object{{
			"type": "bridge", "bridge": bridge,
			// A pod that is its own Service's endpoint gets its packets back.
			"hairpinMode": true,
			"ipam": object{
				"type":    "host-local",
				"dataDir": l.ipam(),
				"ranges":  [][]object{{{"subnet": podRange, "rangeStart": podFirst, "gateway": gateway}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			},
		}},
	}
}

// containerdTemplate is the configuration of one node's containerd. Every path
// that containerd would put somewhere else by default is named.
var containerdTemplate = template.Must(template.New("containerd").Parse(`version = 2
root = "{{.Node}}/containerd"
state = "{{.Node}}/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Node}}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.Pause}}"
  # A sandboxed root may lack CAP_SYS_RESOURCE, and runc then fails on
  # containers that want to be killed later than this process.
  restrict_oom_score_adj = true
  # Network namespaces below the state directory are found and removed with it.
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.CNIBin}}"
    conf_dir = "{{.CNIConf}}"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{{.Snapshotter}}"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{{.Node}}/run/runc"
        SystemdCgroup = false
`))

func (l layout) containerdConfig(n Node, pause, snapshotter string) ([]byte, error) {
	var b strings.Builder
	err := containerdTemplate.Execute(&b, map[string]string{
		"Node": l.node(n.Name), "Socket": l.socket(n.Name), "Pause": pause,
		"CNIBin": cniDir, "CNIConf": l.config("cni"), "Snapshotter": snapshotter,
	})
	if err != nil {
		return nil, fmt.Errorf("render containerd configuration: %w", err)
	}
	return []byte(b.String()), nil
}

// writeConfigs writes every configuration file and kubeconfig.
func (l layout) writeConfigs(pause, snapshotter string) error {
	files := map[string]any{
		"scheduler.yaml":      l.schedulerConfig(),
		"proxy.yaml":          l.proxyConfig(),
		"cni/10-pod.conflist": l.cniConfig(),
	}
	kubeconfigs := []string{"controller-manager", "scheduler", "proxy", "volumes"}
	for _, n := range listNodes() {
		files[n.Name+"-kubelet.yaml"] = l.kubeletConfig(n)
		kubeconfigs = append(kubeconfigs, n.Name)
		content, err := l.containerdConfig(n, pause, snapshotter)
		if err != nil {
			return err
		}
		if err := writeFile(l.config(n.Name+"-containerd.toml"), content, 0o644); err != nil {
			return err
		}
	}
	for name, v := range files {
		content, err := encodeJSON(v)
		if err != nil {
			return err
		}
		if err := writeFile(l.config(name), content, 0o644); err != nil {
			return err
		}
	}
	for _, name := range kubeconfigs {
		content, err := l.kubeconfigFor(name)
		if err != nil {
			return err
		}
		if err := writeFile(l.config(name+".kubeconfig"), content, 0o600); err != nil {
			return err
		}
	}
	// No name server but the cluster's: pods have no way out of this machine.
	if err := writeFile(l.config("resolv.conf"), []byte("# empty on purpose\n"), 0o644); err != nil {
		return err
	}
	admin, err := l.kubeconfigFor("admin")
	if err != nil {
		return err
	}
	return writeFile(l.kubeconfig(), admin, 0o600)
}
