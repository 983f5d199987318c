package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func bootstrapped(status string) change {
	return change{"status", `{replicas: 3, readyReplicas: 3, updatedReplicas: 3, conditions: [
		{type: Bootstrapped, status: "` + status + `", reason: Bootstrapping, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`}
}

// notUpToDate is a status that says why the spec is not in force yet.
func notUpToDate(reason string) change {
	return change{"status", `{replicas: 1, readyReplicas: 1, updatedReplicas: 1, conditions: [
		{type: UpToDate, status: "False", reason: ` + reason + `, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`}
}

// requested is what a group says of its claims.
func requested(volume, size string) []change {
	return one("status", "{replicas: 1, readyReplicas: 1, updatedReplicas: 1, volumes: [{name: "+volume+", requested: '"+size+"'}]}")
}

func TestTransitions(t *testing.T) {
	sql, root := change{"spec.bootstrapSQL", "{name: sql, key: init.sql}"}, change{"spec.initialization", "{rootPassword: Generate}"}
	users := change{"spec.initialization", "{users: {secret: people, host: 10.1.%}}"}
	runs := change{"spec.sql", "[{name: a, configMap: {name: sql, key: a.sql}}]"}
	for _, c := range []struct {
		name string
		kind string
		// before is how the object differs from the smallest valid one, status
		// what its operator has reported, and after what the user then edits.
		before, status, after []change
		// refused is what the refusal must say; none means that the edit is taken.
		refused []string
	}{
		{name: "PD's replicas before anything is reported", kind: pd, after: one("spec.replicas", "5"),
			refused: []string{"spec.replicas", "cannot change until PD has bootstrapped", "wait for condition Bootstrapped, or delete the group"}},
		{name: "PD's replicas left to the default, then said otherwise", kind: pd, after: one("spec.replicas", "1"), refused: []string{"cannot change until PD has bootstrapped"}},
		{name: "PD's replicas left to the default, then said the same", kind: pd, after: one("spec.replicas", "3")},
		{name: "PD's replicas taken out, which brings the default back", kind: pd, before: one("spec.replicas", "5"), after: one("spec.replicas", ""), refused: []string{"cannot change until PD has bootstrapped"}},
		{name: "PD's replicas while it bootstraps", kind: pd, status: []change{bootstrapped("False")}, after: one("spec.replicas", "5"), refused: []string{"cannot change until PD has bootstrapped"}},
		{name: "PD's replicas once it has bootstrapped", kind: pd, status: []change{bootstrapped("True")}, after: one("spec.replicas", "5")},
		{name: "PD's version before it has bootstrapped", kind: pd, after: one("spec.version", "v8.5.8")},
		{name: "a cluster's PD replicas before there is a cluster ID", kind: cluster, after: one("spec.pd.replicas", "5"),
			refused: []string{"spec.pd.replicas", "cannot change until PD has bootstrapped", "wait for status.clusterID"}},
		{name: "a cluster's PD replicas once there is a cluster ID", kind: cluster, status: one("status", "{clusterID: '7123'}"), after: one("spec.pd.replicas", "5")},
		{name: "a cluster's PD replicas of 0, with which its PDGroup cannot be made", kind: cluster, before: one("spec.pd.replicas", "0"), after: one("spec.pd.replicas", "3")},
		{name: "a cluster's TiKV replicas at any time", kind: cluster, after: one("spec.tikv[0].replicas", "5")},

		{name: "another PDGroup for a TiKVGroup", kind: tikv, after: one("spec.pdGroup.name", "other"), refused: []string{"spec.pdGroup", "pdGroup is immutable: create another group instead"}},
		{name: "another PDGroup for a TiDBGroup", kind: tidb, after: one("spec.pdGroup.name", "other"), refused: []string{"spec.pdGroup", "pdGroup is immutable"}},
		{name: "another PDGroup for a TiFlashGroup", kind: tiflash, after: one("spec.pdGroup.name", "other"), refused: []string{"spec.pdGroup", "pdGroup is immutable"}},
		{name: "another slot for an Instance", kind: inst, after: one("spec.slot", "1"), refused: []string{"spec.slot", "slot is immutable"}},

		{name: "a cluster domain added later", kind: pd, after: one("spec.clusterDomain", "cluster.local"), refused: []string{"spec", "clusterDomain is part of the addresses by which PD knows the members", "leave it as it was"}},
		{name: "a cluster domain changed later", kind: tikv, before: one("spec.clusterDomain", "cluster.local"), after: one("spec.clusterDomain", "k8s.example.com"), refused: []string{"clusterDomain is part of the addresses"}},
		{name: "another PDGroup for a TiProxyGroup", kind: tiproxy, after: one("spec.pdGroup.name", "other"), refused: []string{"spec.pdGroup", "pdGroup is immutable"}},
		{name: "another PDGroup for a TiCDCGroup", kind: ticdc, after: one("spec.pdGroup.name", "other"), refused: []string{"spec.pdGroup", "pdGroup is immutable"}},
		{name: "a cluster domain taken away later", kind: tiflash, before: one("spec.clusterDomain", "cluster.local"), after: one("spec.clusterDomain", ""), refused: []string{"clusterDomain is part of the addresses"}},
		{name: "a cluster domain kept through another edit", kind: tidb, before: one("spec.clusterDomain", "cluster.local"), after: one("spec.replicas", "3")},
		{name: "a cluster domain added to a cluster", kind: cluster, after: one("spec.clusterDomain", "cluster.local"), refused: []string{"clusterDomain is part of the addresses"}},
		{name: "a cluster domain added to an entry of a cluster", kind: cluster, after: one("spec.tikv[0].clusterDomain", "cluster.local"), refused: []string{"spec.tikv[0]", "clusterDomain is part of the addresses"}},
		{name: "a new entry in a cluster with a domain", kind: cluster, before: one("spec.clusterDomain", "cluster.local"), after: one("spec.tidb[1]", "{name: more}")},

		{name: "preferIPv6 turned on later", kind: cluster, after: one("spec.preferIPv6", "true")},
		{name: "preferIPv6 turned off later", kind: pd, before: one("spec.preferIPv6", "true"), after: one("spec.preferIPv6", "")},
		{name: "a second family of addresses added later", kind: tikv, after: one("spec.peerService", "{ipFamilyPolicy: PreferDualStack}")},

		{name: "storage that shrinks", kind: tikv, after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"spec.volumes", "spec.volumes[].storage may only grow", "set it back to what it was"}},
		{name: "storage that shrinks, of PD", kind: pd, after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"spec.volumes[].storage may only grow"}},
		{name: "storage that shrinks while the group waits for something else", kind: tikv, status: []change{notUpToDate("Creating")}, after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"spec.volumes[].storage may only grow"}},
		{name: "storage set back because a quota refused the increase", kind: tikv, status: []change{notUpToDate("QuotaExceeded")}, after: one("spec.volumes[0].storage", "512Mi")},
		{name: "storage that shrinks by replacing members", kind: tikv, before: one("spec.volumeReplacement", "Replace"), after: one("spec.volumes[0].storage", "512Mi")},
		{name: "storage that shrinks where members are never replaced", kind: tikv, before: one("spec.volumeReplacement", "Never"), after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"or set spec.volumeReplacement to Replace"}},
		{name: "another word for the replacement", kind: tikv, after: one("spec.volumeReplacement", "Always"), refused: []string{"spec.volumeReplacement", "Replace"}},
		{name: "storage set back that no claim has asked for yet", kind: tikv, status: requested("tikv", "512Mi"), after: one("spec.volumes[0].storage", "512Mi")},
		{name: "storage set back before there is any claim", kind: pd, status: requested("pd", "0"), after: one("spec.volumes[0].storage", "512Mi")},
		{name: "storage set back below what a claim has asked for", kind: tikv, status: requested("tikv", "600Mi"), after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"spec.volumes[].storage may only grow"}},
		{name: "storage set back of a volume of which nothing is known", kind: tikv, status: requested("other", "512Mi"), after: one("spec.volumes[0].storage", "512Mi"), refused: []string{"spec.volumes[].storage may only grow"}},
		{name: "storage that stays below a claim made larger by hand", kind: tikv, status: requested("tikv", "9Gi"), after: one("spec.volumes[0].storage", "1Gi")},
		{name: "storage set back because the driver failed", kind: tiflash, status: []change{notUpToDate("VolumeChangeFailed")}, after: one("spec.volumes[0].storage", "512Mi")},
		{name: "storage that grows", kind: tikv, after: one("spec.volumes[0].storage", "2Gi")},
		{name: "storage said in another unit", kind: tikv, after: one("spec.volumes[0].storage", "1024Mi")},
		{name: "storage that shrinks behind a volume put before it", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 3Gi}"),
			after: one("spec.volumes", "[{name: data1, storage: 2Gi}, {name: data0, storage: 1Gi}]"), refused: []string{"spec.volumes[].storage may only grow"}},

		{name: "TiFlash's data volumes in another order", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 1Gi}"),
			after: one("spec.volumes", "[{name: data1, storage: 1Gi}, {name: data0, storage: 1Gi}]"), refused: []string{"the first data volume", "has to stay the first", "add volumes behind it"}},
		{name: "a data volume put before another one, in a cluster", kind: cluster, after: one("spec.tiflash[0].volumes", "[{name: more, storage: 1Gi}, {name: data0, storage: 1Gi}]"), refused: []string{"spec.tiflash[0]", "has to stay the first"}},
		{name: "the first of two data volumes taken away", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 1Gi}"), after: one("spec.volumes", "[{name: data1, storage: 1Gi}]"), refused: []string{"has to stay the first"}},
		{name: "the last data volume taken away", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 1Gi}"), after: one("spec.volumes", "[{name: data0, storage: 1Gi}]")},
		{name: "a data volume added at the end", kind: tiflash, after: one("spec.volumes[1]", "{name: data1, storage: 1Gi}")},
		{name: "a volume with mounts put before a data volume", kind: tiflash, after: one("spec.volumes", "[{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}]}, {name: data0, storage: 1Gi}]")},
		{name: "data volumes in another order behind one with mounts", kind: tiflash, before: one("spec.volumes", "[{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}]}, {name: data0, storage: 1Gi}, {name: data1, storage: 1Gi}]"),
			after: one("spec.volumes", "[{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}]}, {name: data1, storage: 1Gi}, {name: data0, storage: 1Gi}]"), refused: []string{"has to stay the first"}},
		{name: "a volume with mounts put before data volumes in another order", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 1Gi}"),
			after: one("spec.volumes", "[{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}]}, {name: data1, storage: 1Gi}, {name: data0, storage: 1Gi}]"), refused: []string{"has to stay the first"}},
		{name: "the first data volume mounted elsewhere", kind: tiflash, before: one("spec.volumes[1]", "{name: data1, storage: 1Gi}"),
			after: one("spec.volumes", "[{name: data0, storage: 1Gi, mounts: [{mountPath: /old}]}, {name: data1, storage: 1Gi}]"), refused: []string{"has to stay the first"}},
		{name: "TiFlash's data volume under another name, which is another claim", kind: tiflash, after: one("spec.volumes[0].name", "other"), refused: []string{"has to stay the first"}},
		{name: "TiKV's data volume under another name, which is another claim", kind: tikv, after: one("spec.volumes[0].name", "other"), refused: []string{"the data volume has to stay", "set its name back"}},
		{name: "PD's data volume under another name", kind: pd, after: one("spec.volumes[0].name", "other"), refused: []string{"the data volume has to stay"}},
		{name: "TiKV's data volume in place of another one", kind: tikv, before: one("spec.volumes[1]", "{name: more, storage: 1Gi, mounts: [{mountPath: /more}]}"),
			after: []change{{"spec.volumes[0].mounts", "[{mountPath: /more}]"}, {"spec.volumes[1].mounts", ""}}, refused: []string{"the data volume has to stay"}},
		{name: "another data volume, in a cluster", kind: cluster, after: one("spec.pd.volumes[0].name", "other"), refused: []string{"spec.pd", "the data volume has to stay"}},
		{name: "a volume with mounts put before TiKV's data volume", kind: tikv, after: one("spec.volumes", "[{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}]}, {name: tikv, storage: 1Gi}]")},
		{name: "bootstrap SQL added later", kind: tidb, after: []change{sql}, refused: []string{"bootstrapSQL takes effect only when the cluster is made", "run the SQL with a client instead"}},
		{name: "bootstrap SQL changed later", kind: tidb, before: []change{sql}, after: one("spec.bootstrapSQL.key", "other.sql"), refused: []string{"bootstrapSQL takes effect only when the cluster is made"}},
		{name: "bootstrap SQL taken away later", kind: tidb, before: []change{sql}, after: one("spec.bootstrapSQL", "")},
		{name: "bootstrap SQL kept through another edit", kind: tidb, before: []change{sql}, after: one("spec.replicas", "3")},
		{name: "initialization added later", kind: tidb, after: []change{root}, refused: []string{"initialization takes effect only when the cluster is made"}},
		{name: "initialization taken away later", kind: tidb, before: []change{root}, after: one("spec.initialization", "")},
		{name: "initialization kept through another edit", kind: tidb, before: []change{root}, after: one("spec.replicas", "3")},
		{name: "initial users added later", kind: tidb, after: []change{users}, refused: []string{"initialization takes effect only when the cluster is made", "set passwords with a client instead"}},
		{name: "initial users added to a generated root", kind: tidb, before: []change{root}, after: one("spec.initialization.users", "{secret: people}"), refused: []string{"initialization takes effect only when the cluster is made"}},
		{name: "initial users of another Secret", kind: tidb, before: []change{users}, after: one("spec.initialization.users.secret", "others"), refused: []string{"initialization takes effect only when the cluster is made"}},
		{name: "initial users kept through another edit", kind: tidb, before: []change{users}, after: one("spec.replicas", "3")},
		{name: "initial users taken away later", kind: tidb, before: []change{users}, after: one("spec.initialization", "")},
		{name: "a new entry with initial users in an old cluster", kind: cluster, after: one("spec.tidb[1]", "{name: more, initialization: {rootPassword: Generate, users: {secret: people}}}")},
		{name: "initialization added to an entry of a cluster", kind: cluster, after: one("spec.tidb[0].initialization", "{rootPassword: Generate}"), refused: []string{"spec.tidb[0]", "initialization takes effect only when the cluster is made"}},
		{name: "bootstrap SQL added to an entry of a cluster", kind: cluster, after: one("spec.tidb[0].bootstrapSQL", "{name: sql, key: init.sql}"), refused: []string{"spec.tidb[0]", "bootstrapSQL takes effect only"}},
		{name: "a new entry with bootstrap SQL in an old cluster", kind: cluster, after: one("spec.tidb[1]", "{name: more, bootstrapSQL: {name: sql, key: init.sql}}")},
		{name: "SQL added later", kind: tidb, after: []change{runs}},
		{name: "SQL that is to run again", kind: tidb, before: []change{runs}, after: one("spec.sql[0].revision", "2")},
		{name: "SQL of another key at the same revision", kind: tidb, before: []change{runs}, after: one("spec.sql[0].configMap.key", "other.sql"), refused: []string{"spec.sql[0]", "run once for each revision", "raise revision"}},
		{name: "SQL of another key at the next revision", kind: tidb, before: []change{runs}, after: []change{{"spec.sql[0].configMap.key", "other.sql"}, {"spec.sql[0].revision", "2"}}},
		{name: "SQL at an earlier revision", kind: tidb, before: []change{runs, {"spec.sql[0].revision", "2"}}, after: one("spec.sql[0].revision", "1"), refused: []string{"spec.sql[0]", "raise revision"}},
		{name: "SQL that goes", kind: tidb, before: []change{runs}, after: one("spec.sql", "")},
		{name: "SQL put before other SQL", kind: tidb, before: []change{runs}, after: one("spec.sql", "[{name: b, users: {secret: people}}, {name: a, configMap: {name: sql, key: a.sql}}]")},
		{name: "SQL of an entry of a cluster at the same revision", kind: cluster, before: one("spec.tidb[0].sql", "[{name: a, users: {secret: people}}]"), after: one("spec.tidb[0].sql[0].users.secret", "others"), refused: []string{"spec.tidb[0].sql[0]", "raise revision"}},
		{name: "SQL of an entry of a cluster that is to run again", kind: cluster, before: one("spec.tidb[0].sql", "[{name: a, users: {secret: people}}]"), after: one("spec.tidb[0].sql[0].revision", "5")},
		{name: "an entry of a cluster that goes", kind: cluster, after: one("spec.tiflash", "")},
		{name: "pausing", kind: cluster, after: one("spec.paused", "true")},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, namespace := newClient(t), newNamespace(t)
			o := apply(t, valid(t, c.kind, namespace), c.before...)
			require.NoError(t, k.Create(t.Context(), o))
			if c.status != nil {
				require.NoError(t, k.Status().Update(t.Context(), apply(t, o, c.status...)))
			}
			err := k.Update(t.Context(), apply(t, o, c.after...), client.DryRunAll)
			if c.refused == nil {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err), "refused for another reason: %v", err)
			for _, fragment := range c.refused {
				assert.ErrorContains(t, err, fragment)
			}
		})
	}
}

func TestStatusIsWrittenForAnyNumberOfReplicas(t *testing.T) {
	k, namespace := newClient(t), newNamespace(t)
	o := valid(t, pd, namespace)
	require.NoError(t, k.Create(t.Context(), o))
	for _, status := range []string{"False", "True"} {
		require.NoError(t, k.Status().Update(t.Context(), apply(t, o, bootstrapped(status))))
	}
}

func TestStatusHasRoomForAllGroupsOfTheLongestSpec(t *testing.T) {
	k, namespace := newClient(t), newNamespace(t)
	var changes []change
	groups := []string{"{name: basic-pd, kind: PDGroup, ready: Unknown, replicas: 3, readyReplicas: 0}"}
	for component, kind := range map[string]string{"tikv": tikv, "tidb": tidb, "tiflash": tiflash, "tiproxy": v1alpha1.KindTiProxyGroup, "ticdc": v1alpha1.KindTiCDCGroup} {
		var entries []string
		for n := range 16 {
			entry := fmt.Sprintf("name: n%d, version: v8.5.7", n)
			if component == "tikv" || component == "tiflash" {
				entry += ", volumes: [{name: data, storage: 1Gi}]"
			}
			entries = append(entries, "{"+entry+"}")
			groups = append(groups, fmt.Sprintf("{name: basic-%s-n%d, kind: %s, ready: Unknown, replicas: 1, readyReplicas: 0}", component, n, kind))
		}
		changes = append(changes, change{"spec." + component, "[" + strings.Join(entries, ", ") + "]"})
	}
	o := apply(t, valid(t, cluster, namespace), changes...)
	require.NoError(t, k.Create(t.Context(), o))
	require.NoError(t, k.Status().Update(t.Context(), apply(t, o, change{"status", "{groups: [" + strings.Join(groups, ", ") + "]}"})))
}

func TestTheSchemaFillsInTheDefaults(t *testing.T) {
	const retain = `{"whenDeleted":"Retain","whenScaled":"Retain"}`
	for _, c := range []struct {
		kind string
		want map[string]string // field → value, in YAML
	}{
		{pd, map[string]string{"replicas": "3", "imagePullPolicy": "IfNotPresent", "persistentVolumeClaimRetentionPolicy": retain, "service": "{type: ClusterIP}"}},
		{tikv, map[string]string{"replicas": "3", "imagePullPolicy": "IfNotPresent", "persistentVolumeClaimRetentionPolicy": retain}},
		{tidb, map[string]string{"replicas": "2", "imagePullPolicy": "IfNotPresent", "persistentVolumeClaimRetentionPolicy": retain, "service": "{type: ClusterIP}",
			"readiness": "{type: HTTP}", "shutdown": "{delaySeconds: 10, drainSeconds: 15}", "slowLog": "{image: 'busybox:1.37.0'}"}},
		{tiflash, map[string]string{"replicas": "1", "imagePullPolicy": "IfNotPresent", "persistentVolumeClaimRetentionPolicy": retain, "logTailer": "{image: 'busybox:1.37.0'}"}},
		{tiproxy, map[string]string{"replicas": "2", "maxSurge": "1", "imagePullPolicy": "IfNotPresent", "service": "{type: ClusterIP}", "shutdown": "{delaySeconds: 10, drainSeconds: 60, closeSeconds: 15}"}},
		{ticdc, map[string]string{"replicas": "2", "imagePullPolicy": "IfNotPresent", "drainSeconds": "600"}},
		{inst, map[string]string{"claimRetention": retain, "claimLoss": "Hold"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			k, namespace := newClient(t), newNamespace(t)
			o := valid(t, c.kind, namespace)
			require.NoError(t, k.Create(t.Context(), o))
			spec, _, err := unstructured.NestedMap(o.Object, "spec")
			require.NoError(t, err)
			for field, want := range c.want {
				expected := apply(t, &unstructured.Unstructured{Object: map[string]any{}}, change{"value", want}).Object["value"]
				assert.EqualValues(t, number(expected), number(spec[field]), field)
			}
		})
	}
	t.Run("every entry of a TidbCluster", func(t *testing.T) {
		k, namespace := newClient(t), newNamespace(t)
		o := apply(t, valid(t, cluster, namespace), change{"spec.tidb[1]", "{name: more}"})
		require.NoError(t, k.Create(t.Context(), o))
		replicas := map[string]int64{}
		for _, list := range []string{"tikv", "tidb", "tiflash", "tiproxy", "ticdc"} {
			entries, _, err := unstructured.NestedSlice(o.Object, "spec", list)
			require.NoError(t, err)
			for _, e := range entries {
				entry, ok := e.(map[string]any)
				require.True(t, ok)
				name, ok := entry["name"].(string)
				require.True(t, ok, "an entry without a name gets the empty one")
				if count, ok := entry["replicas"].(int64); ok {
					replicas[list+"/"+name] = count
				}
			}
		}
		assert.Equal(t, map[string]int64{"tikv/": 3, "tidb/": 2, "tiflash/": 1, "tiproxy/": 2, "ticdc/": 2}, replicas, "those of an entry of TiDB that says none are scaled by others")
	})
}

// number turns every number of a value read from YAML or JSON into an int64.
func number(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for key, below := range v {
			v[key] = number(below)
		}
	}
	return value
}
