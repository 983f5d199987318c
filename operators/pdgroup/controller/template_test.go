package controller

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
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
	g := stored(func(g *v1alpha1.PDGroup) {
		g.Spec.Config = "lease = 5\n[schedule]\nmax-snapshot-count = 8"
		g.Spec.Labels = map[string]string{"team": "blue"}
	})
	pod, files, problems := buildTemplate(g, "tidb-groups/pdgroup-operator:dev")
	require.Empty(t, problems)
	initial := pod.DeepCopy()
	bootstrap.SetArgument(g, initial, bootstrap.Startup{Bootstraps: true, InitialCluster: []int32{0, 1, 2}})
	golden(t, "pd", pod, map[string]any{"initialMember": initial.Spec.Containers[0].Args}, files, renderServices(g)[0], renderServices(g)[1])
}

// F7 of the security review: pods try a name without the cluster's domain against their
// search list first.
func TestP12AddressesEndWithTheClusterDomain(t *testing.T) {
	g := stored(func(g *v1alpha1.PDGroup) { g.Spec.ClusterDomain = "k8s.example.com" })
	pod, _, problems := buildTemplate(g, "")
	require.Empty(t, problems)
	args := pod.Spec.Containers[0].Args
	for _, want := range []string{
		"--advertise-client-urls=http://$(POD_NAME).basic-pd-peer.ns.svc.k8s.example.com:2379",
		"--advertise-peer-urls=http://$(POD_NAME).basic-pd-peer.ns.svc.k8s.example.com:2380",
		"--join=http://basic-pd.ns.svc.k8s.example.com:2379",
	} {
		assert.Contains(t, args, want)
	}
	initial := pod.DeepCopy()
	bootstrap.SetArgument(g, initial, bootstrap.Startup{Bootstraps: true, InitialCluster: []int32{0, 1}})
	assert.Contains(t, initial.Spec.Containers[0].Args, "--initial-cluster=basic-pd-0=http://basic-pd-0.basic-pd-peer.ns.svc.k8s.example.com:2380,"+
		"basic-pd-1=http://basic-pd-1.basic-pd-peer.ns.svc.k8s.example.com:2380")
	bootstrap.SetArgument(g, initial, bootstrap.Startup{})
	assert.Equal(t, args, initial.Spec.Containers[0].Args)
}

// U 15: nothing listens at IPv4 addresses only, and nothing else is different.
func TestPreferIPv6ListensEverywhere(t *testing.T) {
	before, _, _ := buildTemplate(stored(), "")
	pod, _, problems := buildTemplate(stored(func(g *v1alpha1.PDGroup) { g.Spec.PreferIPv6 = true }), "")
	require.Empty(t, problems)
	args := pod.Spec.Containers[0].Args
	assert.Subset(t, args, []string{"--client-urls=http://[::]:2379", "--peer-urls=http://[::]:2380"})
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "[::]", "0.0.0.0")
	}
	assert.Equal(t, before, pod)
}

// PD's flag has a default that wins over its file.
func TestTheLogLevelIsAFlag(t *testing.T) {
	for config, want := range map[string]string{"[log]\nlevel = \"warn\"": "--log-level=warn", "[log]\nformat = \"json\"": "", "": ""} {
		pod, _, problems := buildTemplate(stored(func(g *v1alpha1.PDGroup) { g.Spec.Config = config }), "")
		require.Empty(t, problems)
		var flags []string
		for _, arg := range pod.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--log-level") {
				flags = append(flags, arg)
			}
		}
		assert.Equal(t, want, strings.Join(flags, " "))
	}
}

func TestKeysThatTheOperatorOwnsAreRefused(t *testing.T) {
	for _, key := range ownedKeys() {
		t.Run(key, func(t *testing.T) {
			_, _, problems := buildTemplate(stored(func(g *v1alpha1.PDGroup) { g.Spec.Config = key + ` = "mine"` }), "")
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], "spec.config")
			assert.Contains(t, problems[0], `"`+key+`"`)
			assert.Contains(t, problems[0], "remove it")
		})
	}
}

// A store gets its labels when it has registered, and PD refuses to register one without.
func TestStrictLabelsAreRefused(t *testing.T) {
	for config, refused := range map[string]bool{
		"[replication]\nstrictly-match-label = true\n":  true,
		"[replication]\nstrictly-match-label = false\n": false,
		"replication.strictly-match-label = true\n":     true,
	} {
		_, _, problems := buildTemplate(stored(configured(config)), "")
		if !refused {
			assert.Empty(t, problems, config)
			continue
		}
		require.Len(t, problems, 1, config)
		assert.Contains(t, problems[0], "spec.config: replication.strictly-match-label")
	}
}

func TestAllProblemsOfASpecAreReportedTogether(t *testing.T) {
	_, _, problems := buildTemplate(stored(func(g *v1alpha1.PDGroup) {
		g.Spec.Config = `name = "x"`
		g.Spec.Affinity = &runtime.RawExtension{Raw: []byte(`{"nodeAffinities":{}}`)}
		g.Spec.SecurityContext = &runtime.RawExtension{Raw: []byte(`{"runAsUser":"root"}`)}
		g.Spec.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"contaners":[]}}`)}
	}), "")
	require.Len(t, problems, 4)
	for i, field := range []string{"spec.config", "spec.affinity", "spec.securityContext", "spec.overlay"} {
		assert.Contains(t, problems[i], field)
	}
}

func TestTwoGroupsNeverShareAToken(t *testing.T) {
	_, one, _ := buildTemplate(stored(), "")
	_, other, _ := buildTemplate(stored(func(g *v1alpha1.PDGroup) { g.UID = "other" }), "")
	assert.NotEqual(t, one[persisted.File], other[persisted.File])
}

func TestAFieldThatChangesNoPodMakesNoRevision(t *testing.T) {
	hash := func(changes ...func(*v1alpha1.PDGroup)) string {
		p := mustPlan(t, stored(append(changes, bootstrapped)...), started(t, stored(), 3))
		return p.Target.Hash
	}
	base := hash()
	for name, change := range map[string]func(*v1alpha1.PDGroup){
		"more members": replicasOf(5),
		"a suspension": func(g *v1alpha1.PDGroup) { g.Spec.Suspended = true },
		"a claim policy": func(g *v1alpha1.PDGroup) {
			g.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaim
		},
		"a service":          func(g *v1alpha1.PDGroup) { g.Spec.Service = &v1alpha1.ServiceSpec{Type: "NodePort"} },
		"more storage":       func(g *v1alpha1.PDGroup) { g.Spec.Volumes[0].Storage.Set(2 << 30) },
		"a comment in TOML?": func(*v1alpha1.PDGroup) {},
	} {
		assert.Equal(t, base, hash(change), name)
	}
	assert.NotEqual(t, base, hash(func(g *v1alpha1.PDGroup) { g.Spec.Version = "v8.5.8" }))
}

func TestSEC01AMemberSpeaksTLS(t *testing.T) {
	g := stored(func(g *v1alpha1.PDGroup) { g.Spec.TLS = &v1alpha1.PDTLS{} })
	pod, files, problems := buildTemplate(g, "tidb-groups/pdgroup-operator:dev")
	require.Empty(t, problems)
	initial := pod.DeepCopy()
	bootstrap.SetArgument(g, initial, bootstrap.Startup{Bootstraps: true, InitialCluster: []int32{0, 1, 2}})
	golden(t, "tls", pod, map[string]any{"initialMember": initial.Spec.Containers[0].Args}, files, collectInputs(g))

	for _, key := range []string{"cacert-path", "cert-path", "key-path"} {
		g.Spec.Config = "[security]\n" + key + " = '/mine'"
		_, _, problems = buildTemplate(g, "")
		assert.Len(t, problems, 1, "it is the operator's to set")
		g.Spec.TLS = nil
		_, _, problems = buildTemplate(g, "")
		assert.Empty(t, problems, "without spec.tls it is not")
		g.Spec.TLS = &v1alpha1.PDTLS{}
	}
}

func TestSEC01PDLetsMembersOfOneNameConnect(t *testing.T) {
	g := stored(func(g *v1alpha1.PDGroup) { g.Spec.TLS = &v1alpha1.PDTLS{} })
	before := collectInputs(g)
	g.Spec.TLS.AllowedCommonNames = []string{"a"}
	assert.NotEqual(t, before, collectInputs(g), "a change is a roll")
	_, files, problems := buildTemplate(g, "")
	require.Empty(t, problems)
	assert.Contains(t, files[persisted.File], "cert-allowed-cn = ['a']")
	g.Spec.TLS.AllowedCommonNames = []string{"a", "b"}
	_, _, problems = buildTemplate(g, "")
	assert.Empty(t, problems, "PD v8.4 and later take more")
	g.Spec.Version = "v8.3.0"
	_, _, problems = buildTemplate(g, "")
	assert.Equal(t, []string{"spec.tls.allowedCommonNames: PD v8.3.0 takes one name, and has 2: leave one"}, problems)
}
