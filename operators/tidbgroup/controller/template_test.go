package controller

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares objects with a file of testdata.
func golden(t *testing.T, name string, objects ...any) {
	t.Helper()
	var text []byte
	for _, o := range objects {
		part, err := yaml.Marshal(o)
		require.NoError(t, err)
		text = append(append(text, "---\n"...), part...)
	}
	path := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text), "run go test with -update if this is meant")
}

// TestGolden shows what a group becomes. A change of it restarts no pods,
// but shows as NewRendering on every group: it should be meant.
func TestGolden(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Config = "mem-quota-query = 1024"
		g.Spec.SlowLog = &v1alpha1.Sidecar{Image: "busybox:1.37.0"}
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	})
	pod, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "tidb", pod, files, renderServices(g)[0], renderServices(g)[1])
}

// TiDB keeps all of its slow logs, of 300 MB each: they lie in the pod, on the disk of the node, and a
// node whose disk is full evicts its pods.
func TestSlowLogsDoNotFillTheDiskOfTheNode(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		bound  bool
	}{
		"a group that says nothing":      {"", true},
		"one that says another thing":    {"[log]\nlevel = \"warn\"\n[log.file]\nmax-size = 100\n", true},
		"one that says how many":         {"log.file.max-backups = 99", false},
		"one that says that all stay":    {"log.file.max-backups = 0", false},
		"one that says for how long":     {"[log.file]\nmax-days = 7\n", false},
		"one with a log file of its own": {"[log.file]\nfilename = \"/logs/tidb.log\"\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, files, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = c.config }))
			require.Empty(t, problems)
			assert.Equal(t, c.bound, strings.Contains(files[configFile], "max-backups = 10"), files[configFile])
		})
	}
}

// TiDB writes what it records of its memory, plan replayers and persistent summaries of statements
// beside its log, and without a file of it where it was started: the root of a pod cannot be written.
func TestWhatTiDBWritesBesideItsLogHasAPlace(t *testing.T) {
	pod, _, problems := buildTemplate(stored(func(*v1alpha1.TiDBGroup) {}))
	require.Empty(t, problems)
	c := pod.Spec.Containers[0]
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.True(t, slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == c.WorkingDir && !m.ReadOnly }), c.WorkingDir)
}

// TestGoldenOfRootsPassword holds the inputs as well: they are what a revision is
// kept by (P4), and a field that came later is not to be among them while it is
// not used.
func TestGoldenOfRootsPassword(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
	})
	pod, _, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "root", pod, collectInputs(g))
}

// TestGoldenOfUsers shows what users of a Secret add to a pod.
func TestGoldenOfUsers(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
		g.Spec.Initialization = &v1alpha1.Initialization{Users: &v1alpha1.InitialUsers{Secret: "people"}}
	})
	pod, _, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "users", pod.Spec.InitContainers, pod.Spec.Containers[0].Args, pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes, collectInputs(g))
}

// F7 of the security review: pods try a name without the cluster's domain against their
// search list first.
func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	change := func(g *v1alpha1.TiDBGroup) { g.Spec.ClusterDomain = "k8s.example.com" }
	_, tidb := container(t, "tidb", change)
	assert.Contains(t, tidb.Args, "--path=basic-pd.ns.svc.k8s.example.com:2379")
	assert.Contains(t, tidb.Args, "--advertise-address=$(POD_NAME).basic-tidb-peer.ns.svc.k8s.example.com")
	assert.Equal(t, "basic-tidb.ns.svc.k8s.example.com:4000", endpoint(stored(change), nil))
}

// U 15: nothing listens at IPv4 addresses only, and nothing else is different. The
// kubelet probes a pod at the pod's address.
func TestPreferIPv6ListensEverywhere(t *testing.T) {
	before, _, _ := buildTemplate(stored())
	pod, _, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) { g.Spec.PreferIPv6 = true }))
	require.Empty(t, problems)
	args := pod.Spec.Containers[0].Args
	assert.Subset(t, args, []string{"--host=::", "--status-host=::"}, "TiDB adds the brackets itself")
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "::", "0.0.0.0")
	}
	assert.Equal(t, before, pod)
	assert.Empty(t, pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Host)
}

func container(t *testing.T, name string, changes ...func(*v1alpha1.TiDBGroup)) (corev1.PodSpec, *corev1.Container) {
	t.Helper()
	pod, _, problems := buildTemplate(stored(changes...))
	require.Empty(t, problems)
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return pod.Spec, &pod.Spec.Containers[i]
		}
	}
	return pod.Spec, nil
}

func TestKeysThatTheOperatorOwnsAreRefused(t *testing.T) {
	for _, key := range ownedKeys() {
		t.Run(key, func(t *testing.T) {
			_, _, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = key + ` = "mine"` }))
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], `"`+key+`"`)
			assert.Contains(t, problems[0], "spec.config")
		})
	}
	_, _, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "[log" }))
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "not valid TOML at line 1")
}

func TestDB03AServerIsStoppedWithoutBreakingConnections(t *testing.T) {
	for name, c := range map[string]struct {
		shutdown *v1alpha1.Shutdown
		own      *int64
		sleep    *int64
		drain    string
		grace    int64
	}{
		"by default it stays for 10 s and drains for 15 s": {nil, nil, ptr.To(int64(10)), "= 15", 45},
		"an empty choice is the default":                   {&v1alpha1.Shutdown{}, nil, ptr.To(int64(10)), "= 15", 45},
		"the user's times count":                           {&v1alpha1.Shutdown{DelaySeconds: ptr.To(int64(60)), DrainSeconds: ptr.To(int64(600))}, nil, ptr.To(int64(60)), "= 600", 680},
		"no delay is no hook":                              {&v1alpha1.Shutdown{DelaySeconds: ptr.To(int64(0)), DrainSeconds: ptr.To(int64(0))}, nil, nil, "= 0", 20},
		"within a grace period of the user's own":          {nil, ptr.To(int64(32)), ptr.To(int64(10)), "= 2", 32},
		"within next to none":                              {nil, ptr.To(int64(24)), ptr.To(int64(4)), "= 0", 24},
		"within less than it takes to close":               {nil, ptr.To(int64(7)), nil, "= 0", 7},
		"a longer one than it needs changes nothing":       {nil, ptr.To(int64(900)), ptr.To(int64(10)), "= 15", 900},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(g *v1alpha1.TiDBGroup) { g.Spec.Shutdown, g.Spec.TerminationGracePeriodSeconds = c.shutdown, c.own }
			pod, tidb := container(t, "tidb", change)
			assert.Equal(t, c.grace, *pod.TerminationGracePeriodSeconds)
			if c.sleep == nil {
				assert.Nil(t, tidb.Lifecycle)
			} else {
				assert.Equal(t, *c.sleep, tidb.Lifecycle.PreStop.Sleep.Seconds)
				assert.LessOrEqual(t, *c.sleep, *pod.TerminationGracePeriodSeconds, "Kubernetes refuses the pod otherwise")
			}
			_, files, _ := buildTemplate(stored(change))
			assert.Contains(t, files[configFile], "graceful-wait-before-shutdown "+c.drain)
		})
	}
}

func TestDB07ReadinessIsTheUsersChoice(t *testing.T) {
	for name, c := range map[string]struct {
		readiness *v1alpha1.Readiness
		want      corev1.ProbeHandler
	}{
		"HTTP by default":      {nil, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/status", Port: intstr.FromString("status"), Scheme: "HTTP"}}},
		"HTTP when none named": {&v1alpha1.Readiness{}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/status", Port: intstr.FromString("status"), Scheme: "HTTP"}}},
		"TCP":                  {&v1alpha1.Readiness{Type: "TCP"}, corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("mysql")}}},
		"a command":            {&v1alpha1.Readiness{Type: "Command", Command: []string{"/ok"}}, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/ok"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) { g.Spec.Readiness = c.readiness })
			assert.Equal(t, c.want, tidb.ReadinessProbe.ProbeHandler)
		})
	}
}

func TestDB20APodIsGivenPluginsALifecycleAndAStartupProbe(t *testing.T) {
	pod, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) {
		g.Spec.Config = "[instance]\nplugin_dir = \"/plugins\"\nplugin_load = \"audit-1\"\n"
		g.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{
			"initContainers":[{"name":"plugins","image":"plugins:1","volumeMounts":[{"name":"plugins","mountPath":"/plugins"}]}],
			"volumes":[{"name":"plugins","emptyDir":{}}],
			"containers":[{"name":"tidb",
				"volumeMounts":[{"name":"plugins","mountPath":"/plugins"}],
				"lifecycle":{"postStart":{"exec":{"command":["/warm-up"]}}},
				"startupProbe":{"tcpSocket":{"port":"mysql"},"failureThreshold":60}}]}}`)}
		files, problems := renderConfig(g)
		assert.Empty(t, problems)
		assert.Contains(t, files[configFile], "plugin_load = ")
	})
	require.Len(t, pod.InitContainers, 1)
	assert.Contains(t, tidb.VolumeMounts, corev1.VolumeMount{Name: "plugins", MountPath: "/plugins"})
	assert.Equal(t, "mysql", tidb.StartupProbe.TCPSocket.Port.StrVal)
	assert.Equal(t, []string{"/warm-up"}, tidb.Lifecycle.PostStart.Exec.Command)
	assert.NotNil(t, tidb.Lifecycle.PreStop, "what drains connections stays")
	assert.NotNil(t, tidb.ReadinessProbe)
	assert.Contains(t, tidb.Args, "--store=tikv")
	_, _, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tidb","args":["--plugin-load=x"]}]}}`)}
	}))
	assert.Empty(t, problems)
	_, tidb = container(t, "tidb", func(g *v1alpha1.TiDBGroup) {
		g.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tidb","args":["--plugin-load=x"]}]}}`)}
	})
	assert.Contains(t, tidb.Args, "--store=tikv", "arguments are added to the operator's, not put in their place")
	assert.Equal(t, "--plugin-load=x", tidb.Args[len(tidb.Args)-1])
}

func TestDB09BootstrapSQLIsMountedAndNamed(t *testing.T) {
	pod, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) {
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	})
	assert.Contains(t, tidb.Args, "--initialize-sql-file=/etc/tidb-bootstrap/bootstrap.sql")
	assert.Contains(t, tidb.VolumeMounts, corev1.VolumeMount{Name: sqlVolume, MountPath: "/etc/tidb-bootstrap", ReadOnly: true})
	last := pod.Volumes[len(pod.Volumes)-1]
	assert.Equal(t, "sql", last.ConfigMap.Name)
	assert.Equal(t, []corev1.KeyToPath{{Key: "init.sql", Path: "bootstrap.sql"}}, last.ConfigMap.Items)
	_, tidb = container(t, "tidb")
	assert.NotContains(t, tidb.Args, "--initialize-sql-file=/etc/tidb-bootstrap/bootstrap.sql")
}

func TestDB11TheSQLOfTheSecretIsMountedAndHoldsTheUsersToo(t *testing.T) {
	pod, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) {
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
		g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
	})
	assert.Contains(t, tidb.Args, "--initialize-sql-file=/etc/tidb-bootstrap/bootstrap.sql")
	last := pod.Volumes[len(pod.Volumes)-1]
	require.NotNil(t, last.Secret)
	assert.Equal(t, "basic-tidb-root", last.Secret.SecretName)
	assert.Nil(t, last.Secret.Optional, "no server starts without it")
	assert.Equal(t, []corev1.KeyToPath{{Key: "bootstrap.sql", Path: "bootstrap.sql"}}, last.Secret.Items)

	s := rootSecret(stored(), "ABC234", "CREATE USER IF NOT EXISTS x;")
	assert.Equal(t, "root", s.StringData["username"])
	assert.Equal(t, "ABC234", s.StringData["password"])
	assert.Equal(t, "ALTER USER 'root'@'%' IDENTIFIED BY 'ABC234';\nCREATE USER IF NOT EXISTS x;", s.StringData["bootstrap.sql"])
	assert.Empty(t, s.OwnerReferences, "the data outlive the group, and so does their password")
	assert.Equal(t, "Prune=false,Delete=false", s.Annotations["argocd.argoproj.io/sync-options"], "Argo CD deletes what has no owner and the name of an Application as its label app.kubernetes.io/instance")
}

func TestDB10TheUsersOfASecretComeBeforeTheSQL(t *testing.T) {
	for name, c := range map[string]struct {
		generate bool
		sql      *v1alpha1.KeyReference
		// taken and following are the script's last arguments; source names the object
		// that the following SQL is in.
		taken, following, source string
	}{
		"users alone":                         {},
		"users and SQL":                       {sql: &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}, following: "/etc/tidb-following-sql/bootstrap.sql", source: "ConfigMap sql"},
		"users and a generated root":          {generate: true, taken: "root", following: "/etc/tidb-following-sql/bootstrap.sql", source: "Secret basic-tidb-root"},
		"users, a generated root and the SQL": {generate: true, sql: &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}, taken: "root", following: "/etc/tidb-following-sql/bootstrap.sql", source: "Secret basic-tidb-root"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) {
				g.Spec.Initialization = &v1alpha1.Initialization{Users: &v1alpha1.InitialUsers{Secret: "people", Host: "10.%"}}
				if c.generate {
					g.Spec.Initialization.RootPassword = v1alpha1.RootPasswordGenerate
				}
				g.Spec.BootstrapSQL, g.Spec.Image = c.sql, "mirror/tidb:x"
				g.Spec.Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
			})
			require.Len(t, pod.InitContainers, 1)
			users := pod.InitContainers[0]
			assert.Equal(t, []string{"users", "people", "/etc/tidb-users", "10.%", "/etc/tidb-bootstrap/bootstrap.sql", c.taken, c.following}, users.Command[3:])
			assert.Equal(t, tidb.Image, users.Image)
			assert.Equal(t, tidb.Resources, users.Resources, "a quota takes it if it takes the server")
			assert.Contains(t, tidb.Args, "--initialize-sql-file=/etc/tidb-bootstrap/bootstrap.sql")
			assert.Contains(t, tidb.VolumeMounts, corev1.VolumeMount{Name: sqlVolume, MountPath: "/etc/tidb-bootstrap", ReadOnly: true})

			volumes := map[string]corev1.Volume{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = v
			}
			for _, m := range users.VolumeMounts {
				assert.Equal(t, m.Name != sqlVolume, m.ReadOnly, m.Name)
				assert.Contains(t, volumes, m.Name)
			}
			assert.Equal(t, corev1.StorageMediumMemory, volumes[sqlVolume].EmptyDir.Medium, "passwords reach no disk of the node")
			assert.Equal(t, &corev1.SecretVolumeSource{SecretName: "people"}, volumes["tidb-groups-users"].Secret, "no server starts without it")
			source := ""
			switch v, ok := volumes["tidb-groups-following-sql"]; {
			case !ok:
			case v.Secret != nil:
				source = "Secret " + v.Secret.SecretName
			default:
				source = "ConfigMap " + v.ConfigMap.Name
			}
			assert.Equal(t, c.source, source)
		})
	}
	pod, _ := container(t, "tidb")
	assert.Empty(t, pod.InitContainers)
}

func TestDB15TheSlowLogIsPrintedByASidecar(t *testing.T) {
	for name, c := range map[string]struct {
		sidecar *v1alpha1.Sidecar
		there   bool
	}{
		"with the image that is named":   {&v1alpha1.Sidecar{Image: "mirror/busybox:1"}, true},
		"not when it is disabled":        {&v1alpha1.Sidecar{Image: "mirror/busybox:1", Disabled: true}, false},
		"not when the spec says nothing": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, log := container(t, "slowlog", func(g *v1alpha1.TiDBGroup) { g.Spec.SlowLog = c.sidecar })
			assert.Equal(t, c.there, log != nil)
			_, tidb := container(t, "tidb", func(g *v1alpha1.TiDBGroup) { g.Spec.SlowLog = c.sidecar })
			assert.Contains(t, tidb.Args, "--log-slow-query=/var/log/tidb/slow.log")
			if log != nil {
				assert.Equal(t, "mirror/busybox:1", log.Image)
				assert.Contains(t, log.Command, "/var/log/tidb/slow.log")
				assert.Equal(t, tidb.VolumeMounts[len(tidb.VolumeMounts)-1], log.VolumeMounts[0])
			}
		})
	}
}

func TestDB01TheServiceIsShapedByTheUser(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: "LoadBalancer", Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"c": "d", v1alpha1.LabelManagedBy: "x"},
			Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: 3306, NodePort: 30000}}, LoadBalancerClass: ptr.To("x"), LoadBalancerSourceRanges: []string{"10.0.0.0/8"}, ExternalTrafficPolicy: "Local"}
	})
	s := renderServices(g)[0]
	assert.Equal(t, corev1.ServiceTypeLoadBalancer, s.Spec.Type)
	assert.Equal(t, map[string]string{"a": "b"}, s.Annotations)
	assert.Equal(t, "d", s.Labels["c"])
	assert.Equal(t, v1alpha1.ManagedBy, s.Labels[v1alpha1.LabelManagedBy], "the operator's labels win")
	assert.Equal(t, []corev1.ServicePort{
		{Name: "mysql", Port: 3306, NodePort: 30000, TargetPort: intstr.FromString("mysql"), Protocol: "TCP"},
	}, s.Spec.Ports)
	assert.Equal(t, []string{"10.0.0.0/8"}, s.Spec.LoadBalancerSourceRanges)
	assert.Equal(t, "x", *s.Spec.LoadBalancerClass)
	assert.EqualValues(t, "Local", s.Spec.ExternalTrafficPolicy)
	assert.Equal(t, corev1.ServiceTypeClusterIP, renderServices(stored())[0].Spec.Type)
}

func TestDB12AServerSpeaksTLSWithMySQLClientsToo(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.TLS = &v1alpha1.TiDBTLS{MySQL: &v1alpha1.MySQLTLS{ClientAuth: v1alpha1.ClientAuthVerify}}
	})
	pod, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "tls", pod, files, collectInputs(g))

	g.Spec.Config = "[security]\nssl-cert = '/mine'"
	_, _, problems = buildTemplate(g)
	assert.Len(t, problems, 1, "it is the operator's to set")
	g.Spec.Config, g.Spec.TLS.MySQL.ClientAuth = "", ""
	_, files, _ = buildTemplate(g)
	assert.NotContains(t, files[configFile], "/var/lib/tidb-server-tls/ca.crt", "with it clients would have to show certificates")
	assert.Contains(t, files[configFile], "/var/lib/tidb-server-tls/tls.crt")
	g.Spec.Config = "[security]\nssl-cert = '/mine'"
	g.Spec.TLS.MySQL = nil
	pod, files, problems = buildTemplate(g)
	assert.Empty(t, problems, "without tls.mysql it is not")
	assert.NotContains(t, files[configFile], "ssl-ca = '/var/lib/tidb-server-tls")
	assert.Contains(t, files[configFile], "cluster-ssl-ca = '/var/lib/tidb-tls/ca.crt'")
	assert.NotNil(t, pod.Spec.Containers[0].ReadinessProbe.TCPSocket, "the kubelet has no certificate to show")
}

func TestDB13AServerReadsTheKeysOfTokens(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) { g.Spec.AuthToken = &v1alpha1.AuthToken{} })
	pod, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "tokens", pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes, files, collectInputs(g))
	for _, key := range []string{"auth-token-jwks", "auth-token-refresh-interval"} {
		g.Spec.Config, g.Spec.AuthToken = "[security]\n"+key+" = 'mine'", &v1alpha1.AuthToken{}
		_, _, problems = buildTemplate(g)
		assert.Len(t, problems, 1, "it is the operator's to set")
		g.Spec.AuthToken = nil
		_, _, problems = buildTemplate(g)
		assert.Empty(t, problems, "without authToken it is not")
	}
}

func TestDB13AServerSignsTokensOfSessions(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) { g.Spec.SessionToken = &v1alpha1.SessionToken{} })
	pod, files, problems := buildTemplate(g)
	require.Empty(t, problems)
	golden(t, "session-tokens", pod.Spec.Containers[0].VolumeMounts, pod.Spec.Volumes, files, collectInputs(g))
	g.Spec.Config = "[security]\nsession-token-signing-key = 'mine'"
	_, _, problems = buildTemplate(g)
	assert.Len(t, problems, 1, "it is the operator's to set")
	g.Spec.SessionToken = nil
	_, _, problems = buildTemplate(g)
	assert.Empty(t, problems, "without sessionToken it is not")
}

func TestSEC01AServerAcceptsOnlyAllowedNames(t *testing.T) {
	_, files, problems := buildTemplate(stored(func(g *v1alpha1.TiDBGroup) {
		g.Spec.TLS = &v1alpha1.TiDBTLS{TLS: v1alpha1.TLS{AllowedCommonNames: []string{"a", "b"}}}
	}))
	require.Empty(t, problems)
	assert.Contains(t, files[configFile], "cluster-verify-cn = ['a', 'b']")
}
