package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const (
	pd      = v1alpha1.KindPDGroup
	tikv    = v1alpha1.KindTiKVGroup
	tidb    = v1alpha1.KindTiDBGroup
	tiflash = v1alpha1.KindTiFlashGroup
	tiproxy = v1alpha1.KindTiProxyGroup
	ticdc   = v1alpha1.KindTiCDCGroup
	inst    = v1alpha1.KindInstance
	cluster = v1alpha1.KindTidbCluster
)

// badInput is an object that the API server must refuse.
type badInput struct {
	name    string
	kind    string
	changes []change
	// want is what the refusal must say: the field, and the value or the remedy.
	want []string
}

func one(path, value string) []change { return []change{{path, value}} }

func badInputs() []badInput {
	long := strings.Repeat("x", 300)
	return []badInput{
		{"negative replicas of PD", pd, one("spec.replicas", "-1"), []string{"spec.replicas", "-1", "greater than or equal to 0"}},
		{"a new PD group without members", pd, one("spec.replicas", "0"), []string{"spec.replicas", "must be at least 1"}},
		{"more PD members than etcd bears", pd, one("spec.replicas", "9"), []string{"spec.replicas", "9", "less than or equal to 7"}},
		{"negative replicas of TiKV", tikv, one("spec.replicas", "-3"), []string{"spec.replicas", "-3", "greater than or equal to 0"}},
		{"an absurd number of stores", tikv, one("spec.replicas", "100000"), []string{"spec.replicas", "100000", "less than or equal to 1000"}},
		{"replicas that are a word", tidb, one("spec.replicas", "two"), []string{"spec.replicas", "integer"}},
		{"an absurd number of servers", tidb, one("spec.replicas", "1001"), []string{"spec.replicas", "1001", "less than or equal to 1000"}},
		{"negative replicas of TiFlash", tiflash, one("spec.replicas", "-1"), []string{"spec.replicas", "-1", "greater than or equal to 0"}},
		{"negative replicas in a TidbCluster", cluster, one("spec.tikv[0].replicas", "-1"), []string{"spec.tikv[0].replicas", "-1"}},

		{"a group without a version", pd, one("spec.version", ""), []string{"spec.version must be set, to an image tag such as v8.5.7"}},
		{"a TiKV group without a version", tikv, one("spec.version", ""), []string{"spec.version must be set"}},
		{"a cluster without a version", cluster, one("spec.version", ""), []string{"spec.version", "Required value"}},
		{"a version that is no image tag", tidb, one("spec.version", "v8.5.7 beta"), []string{"spec.version", "v8.5.7 beta", "should match"}},
		{"a version without its v", cluster, one("spec.version", "8.5.7"), []string{"spec.version", "8.5.7", "write v8.5.7"}},
		{"a version with a capital V", pd, one("spec.version", "V8.5.7"), []string{"spec.version", "write v8.5.7"}},
		{"a version of an entry without its v", cluster, one("spec.tikv[0].version", "8.5.7"), []string{"spec.tikv[0].version", "write v8.5.7"}},
		{"a version that is another one tomorrow", tikv, one("spec.version", "latest"), []string{"spec.version", "latest", "name one, such as v8.5.7"}},
		{"an empty version", tidb, one("spec.version", `""`), []string{"spec.version", "at least 1"}},
		{"an image with a blank in it", pd, one("spec.image", "pingcap/pd :x"), []string{"spec.image", "pingcap/pd :x"}},
		{"an image name that is too long", pd, one("spec.image", strings.Repeat(long, 2)), []string{"spec.image", "512"}},
		{"an unknown image pull policy", pd, one("spec.imagePullPolicy", "Sometimes"), []string{"spec.imagePullPolicy", "Sometimes", `"Always", "IfNotPresent", "Never"`}},
		{"an image pull secret that is no object name", pd, one("spec.imagePullSecrets", "[{name: Not_A_Name}]"), []string{"spec.imagePullSecrets[0].name", "Not_A_Name"}},

		{"a PD group without volumes", pd, one("spec.volumes", ""), []string{"volumes must have exactly one data volume", "/var/lib/pd"}},
		{"a TiKV group without volumes", tikv, one("spec.volumes", ""), []string{"volumes must have exactly one data volume", "/var/lib/tikv"}},
		{"a TiProxy group with a data volume", tiproxy, one("spec.volumes", "[{name: data, storage: 1Gi}]"), []string{"volumes of a TiProxyGroup must have mounts"}},
		{"common names for TiProxy", tiproxy, one("spec.tls", "{allowedCommonNames: [a]}"), []string{"tls.allowedCommonNames is not for TiProxy"}},
		{"a port of TiProxy that there is not", tiproxy, one("spec.service", "{ports: [{name: client, port: 1}]}"), []string{"may only name mysql and status"}},
		{"a TiProxy group without a version", tiproxy, one("spec.version", ""), []string{"spec.version must be set", "v1.3.0"}},
		{"a TiProxy group of a cluster without a version", cluster, one("spec.tiproxy[0].version", ""), []string{"spec.tiproxy[0]", "releases of its own", "v1.3.0"}},
		{"a TiCDC group with a data volume", ticdc, one("spec.volumes", "[{name: data, storage: 1Gi}]"), []string{"volumes of a TiCDCGroup must have mounts", "/var/lib/ticdc"}},
		{"a Secret of a sink twice", ticdc, one("spec.sinkSecrets", "[a, a]"), []string{"spec.sinkSecrets[1]", "Duplicate value"}},
		{"a Secret of a sink with a path for a name", ticdc, one("spec.sinkSecrets", "[../x]"), []string{"spec.sinkSecrets[0]", "../x"}},
		{"a drain of more than a day", tiproxy, one("spec.shutdown", "{drainSeconds: 86401}"), []string{"spec.shutdown.drainSeconds", "86400"}},
		{"a TiFlash group without volumes", tiflash, one("spec.volumes", ""), []string{"volumes must have at least one data volume", "/data0"}},
		{"two data volumes of TiKV", tikv, one("spec.volumes[1]", "{name: more, storage: 1Gi}"), []string{"volumes must have exactly one data volume"}},
		{"a data volume of TiDB, which has no data", tidb, one("spec.volumes", "[{name: data, storage: 1Gi}]"), []string{"volumes of a TiDBGroup must have mounts"}},
		{"two volumes of one name", tiflash, one("spec.volumes[1]", "{name: data0, storage: 1Gi}"), []string{"spec.volumes[1]", "Duplicate value", "data0"}},
		{"a volume without a name", pd, one("spec.volumes[0].name", ""), []string{"spec.volumes[0].name", "Required value"}},
		{"a volume name in capitals", pd, one("spec.volumes[0].name", "Data"), []string{"spec.volumes[0].name", "Data"}},
		{"a volume by the name of an operator's own", tikv, one("spec.volumes[1]", "{name: tidb-groups-config, storage: 1Gi, mounts: [{mountPath: /logs}]}"), []string{"spec.volumes[1].name", "may not begin with tidb-groups-", "choose another name"}},
		{"a volume name that makes claims' names too long", pd, one("spec.volumes[0].name", strings.Repeat("v", 21)), []string{"spec.volumes[0].name", "may not be more than 20"}},
		{"a volume without storage", pd, one("spec.volumes[0].storage", ""), []string{"spec.volumes[0].storage", "Required value"}},
		{"storage of zero", pd, one("spec.volumes[0].storage", `"0"`), []string{"spec.volumes[0].storage", "storage must be a quantity above zero, such as 100Gi"}},
		{"negative storage", pd, one("spec.volumes[0].storage", "-1Gi"), []string{"spec.volumes[0].storage", "storage must be a quantity above zero"}},
		{"storage that is no quantity", pd, one("spec.volumes[0].storage", "big"), []string{"spec.volumes[0].storage", "big"}},
		{"storage as a bare number", pd, one("spec.volumes[0].storage", "10"), []string{"spec.volumes[0].storage", "must be of type string"}},
		{"a storage class that is no object name", pd, one("spec.volumes[0].storageClassName", "Fast SSD"), []string{"spec.volumes[0].storageClassName", "Fast SSD"}},
		{"an empty storage class", pd, one("spec.volumes[0].storageClassName", `""`), []string{"spec.volumes[0].storageClassName", "at least 1"}},
		{"a mount at a relative path", pd, one("spec.volumes[1]", "{name: logs, storage: 1Gi, mounts: [{mountPath: logs}]}"), []string{"spec.volumes[1].mounts[0].mountPath", "logs"}},
		{"a mount over the component's configuration", tikv, one("spec.volumes[1]", "{name: logs, storage: 1Gi, mounts: [{mountPath: /etc/tikv}]}"), []string{"mountPath may not lie below a configuration directory", "choose another path"}},
		{"an empty list of mounts", pd, one("spec.volumes[0].mounts", "[]"), []string{"spec.volumes[0].mounts", "at least 1"}},
		{"one path mounted twice", pd, one("spec.volumes[1]", "{name: logs, storage: 1Gi, mounts: [{mountPath: /logs}, {mountPath: /logs}]}"), []string{"spec.volumes[1].mounts[1]", "Duplicate value", "/logs"}},
		{"more volumes than a node can attach", tiflash, one("spec.volumes", "["+strings.Repeat("{name: a, storage: 1Gi},", 17)+"]"), []string{"spec.volumes", "17", "at most 16"}},
		{"a retention policy that Kubernetes does not know", pd, one("spec.persistentVolumeClaimRetentionPolicy", "{whenDeleted: Recycle}"), []string{"spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Recycle", `"Retain", "Delete"`}},

		{"a duration that no clock bears, which would stop every operator that reads it", pd, one("spec.replaceAfter", "9999999999h"), []string{"spec.replaceAfter", "9999999999h", "should match"}},
		{"a window's duration that no clock bears", tiflash, one("spec.disruption", "{windows: [{schedule: 0 3 * * *, duration: 99999h99999h99999h99999h99999h}]}"), []string{"spec.disruption.windows[0].duration", "should match"}},
		{"a time until a store counts as dead that is no duration", tikv, one("spec.failover", "{after: soon}"), []string{"spec.failover.after", "soon", "should match"}},
		{"a failover policy that does not exist", tiflash, one("spec.failover", "{policy: Panic}"), []string{"spec.failover.policy", "Panic", `"None", "Add", "Replace"`}},
		{"dead stores replaced by none", tiflash, one("spec.failover", "{policy: Add, max: 0}"), []string{"spec.failover.max", "0"}},
		{"an exclusive placement that is no yes or no", tikv, one("spec.placement", "{exclusive: always}"), []string{"spec.placement.exclusive", "must be of type boolean"}},
		{"a store label that only spec.placement may set", tikv, one("spec.storeLabels", `{"$k/exclusive": "yes"}`), []string{"storeLabels may not set"}},
		{"a time to evict leaders that is a bare number", tikv, one("spec.evictLeaderTimeout", `"10"`), []string{"spec.evictLeaderTimeout", "10", "should match"}},
		{"a time until a server is replaced that no clock bears", tidb, one("spec.failover", "{max: 1, after: 9999999999h}"), []string{"spec.failover.after", "9999999999h", "should match"}},
		{"a resource amount that is no quantity", pd, one("spec.resources", "{limits: {memory: lots}}"), []string{"spec.resources.limits", "lots"}},
		{"configuration as an object in place of TOML", pd, one("spec.config", "[log]"), []string{"spec.config", "must be of type string"}},
		{"an overlay that is a string", pd, one("spec.overlay", "nodeName=x"), []string{"spec.overlay", "must be of type object"}},
		{"an affinity that is a list", pd, one("spec.affinity", "[]"), []string{"spec.affinity", "must be of type object"}},
		{"a negative grace period", tikv, one("spec.terminationGracePeriodSeconds", "-5"), []string{"spec.terminationGracePeriodSeconds", "-5"}},
		{"a misspelt field", tikv, one("spec.replica", "3"), []string{`unknown field "spec.replica"`}},
		{"a label that belongs to the operators", pd, one("spec.labels", "{groups.tidb.dev/group: other}"), []string{"spec.labels", "labels may not begin with groups.tidb.dev/", "choose another prefix"}},
		{"a recommended label, which selectors rely on", pd, one("spec.labels", "{app.kubernetes.io/instance: other}"), []string{"spec.labels", "app.kubernetes.io/", "choose another prefix"}},
		{"an annotation that belongs to the operators", pd, one("spec.annotations", "{groups.tidb.dev/template: x}"), []string{"spec.annotations", "annotations may not begin with groups.tidb.dev/"}},
		{"a priority class that is no object name", pd, one("spec.priorityClassName", "High!"), []string{"spec.priorityClassName", "High!"}},
		{"a service account that is no object name", pd, one("spec.serviceAccountName", "Me"), []string{"spec.serviceAccountName", "Me"}},

		{"a cluster domain with a dot at its end", pd, one("spec.clusterDomain", "cluster.local."), []string{"spec.clusterDomain", "must be a DNS name such as cluster.local, without a dot at its end"}},
		{"a cluster domain in capitals", tiflash, one("spec.clusterDomain", "Cluster.local"), []string{"spec.clusterDomain", "must be a DNS name"}},
		{"a cluster domain with an empty part", cluster, one("spec.clusterDomain", "cluster..local"), []string{"spec.clusterDomain", "must be a DNS name"}},
		{"an empty cluster domain", tikv, one("spec.clusterDomain", `""`), []string{"spec.clusterDomain", "at least 1"}},
		{"a cluster domain that makes addresses too long", tidb, one("spec.clusterDomain", strings.Repeat("x", 65)), []string{"spec.clusterDomain", "may not be more than 64"}},

		{"a toleration with an unknown effect", pd, one("spec.tolerations", "[{key: a, effect: Never}]"), []string{"spec.tolerations[0].effect", "Never"}},
		{"a toleration of any value that names one", pd, one("spec.tolerations", "[{key: a, operator: Exists, value: b}]"), []string{"spec.tolerations[0]", "tolerations[].value goes with operator Equal"}},
		{"a toleration without a key", pd, one("spec.tolerations", "[{operator: Equal, value: b}]"), []string{"spec.tolerations[0]", "name a key, or use Exists"}},
		{"toleration seconds of a taint that does not evict", pd, one("spec.tolerations", "[{key: a, effect: NoSchedule, tolerationSeconds: 5}]"), []string{"spec.tolerations[0]", "tolerationSeconds needs effect NoExecute"}},
		{"a topology key that is no label", pd, one("spec.topologySpreadConstraints", "[{topologyKey: a zone}]"), []string{"spec.topologySpreadConstraints[0].topologyKey", "a zone"}},
		{"one topology spread twice", pd, one("spec.topologySpreadConstraints", "[{topologyKey: zone}, {topologyKey: zone}]"), []string{"spec.topologySpreadConstraints[1]", "Duplicate value"}},
		{"a skew of zero", pd, one("spec.topologySpreadConstraints", "[{topologyKey: zone, maxSkew: 0}]"), []string{"spec.topologySpreadConstraints[0].maxSkew", "0"}},
		{"a minimum of domains where the spread does not bind", pd, one("spec.topologySpreadConstraints", "[{topologyKey: zone, minDomains: 3, whenUnsatisfiable: ScheduleAnyway}]"), []string{"spec.topologySpreadConstraints[0]", "minDomains needs whenUnsatisfiable DoNotSchedule"}},
		{"an environment variable with a dash", tidb, one("spec.env", "[{name: MY-VAR, value: x}]"), []string{"spec.env[0].name", "MY-VAR"}},
		{"a variable that PD's members start by", tidb, one("spec.env", "[{name: TIDB_GROUPS_START, value: x}]"), []string{"spec.env[0].name", "TIDB_GROUPS_START are set by the operator"}},
		{"an environment variable that the operator sets", tidb, one("spec.env", "[{name: POD_NAME, value: x}]"), []string{"spec.env[0].name", "POD_NAME, NAMESPACE and TIDB_GROUPS_START are set by the operator", "choose another name"}},
		{"an environment variable with two sources", tidb, one("spec.env", "[{name: A, value: x, secretKeyRef: {name: s, key: k}}]"), []string{"spec.env[0]", "at most one of value, configMapKeyRef and secretKeyRef"}},
		{"one environment variable twice", tidb, one("spec.env", "[{name: A, value: x}, {name: A, value: y}]"), []string{"spec.env[1]", "Duplicate value"}},
		{"SQL of nothing", tidb, one("spec.sql", "[{name: a}]"), []string{"spec.sql[0]", "exactly one of configMap, secret and users"}},
		{"SQL of two things", tidb, one("spec.sql", "[{name: a, secret: {name: s, key: k}, users: {secret: people}}]"), []string{"spec.sql[0]", "exactly one of configMap, secret and users"}},
		{"SQL of a user without a password", tidb, one("spec.sql", "[{name: a, users: {secret: people}, user: dba}]"), []string{"spec.sql[0]", "user needs passwordSecret"}},
		{"two runs of SQL of one name", tidb, one("spec.sql", "[{name: a, users: {secret: people}}, {name: a, users: {secret: people}}]"), []string{"spec.sql[1]", "Duplicate value"}},
		{"SQL whose name is no label", tidb, one("spec.sql", "[{name: A_b, users: {secret: people}}]"), []string{"spec.sql[0].name", "A_b"}},
		{"a revision of zero", tidb, one("spec.sql", "[{name: a, revision: 0, users: {secret: people}}]"), []string{"spec.sql[0].revision", "0", "greater than or equal to 1"}},
		{"SQL that may take no time", tidb, one("spec.sql", "[{name: a, timeoutSeconds: 0, users: {secret: people}}]"), []string{"spec.sql[0].timeoutSeconds", "0"}},
		{"too many runs of SQL", tidb, one("spec.sql", "["+strings.Repeat("{name: a, users: {secret: people}},", 17)+"]"), []string{"spec.sql", "17", "at most 16"}},
		{"SQL of nothing in a cluster", cluster, one("spec.tidb[0].sql", "[{name: a}]"), []string{"spec.tidb[0].sql[0]", "exactly one of"}},
		{"a secret's key with a slash", tidb, one("spec.env", "[{name: A, secretKeyRef: {name: s, key: a/b}}]"), []string{"spec.env[0].secretKeyRef.key", "a/b"}},

		{"an unknown type of Service", tidb, one("spec.service", "{type: ExternalName}"), []string{"spec.service.type", "ExternalName", `"ClusterIP", "NodePort", "LoadBalancer"`}},
		{"a node port of a ClusterIP Service", tidb, one("spec.service", "{ports: [{name: mysql, nodePort: 30000}]}"), []string{"spec.service", "ports[].nodePort needs type NodePort or LoadBalancer"}},
		{"a port beyond the last", tidb, one("spec.service", "{ports: [{name: mysql, port: 70000}]}"), []string{"spec.service.ports[0].port", "70000", "65535"}},
		{"two ports of one number", tidb, one("spec.service", "{ports: [{name: mysql, port: 4000}, {name: status, port: 4000}]}"), []string{"spec.service", "ports[].port must differ"}},
		{"a port of PD that is TiDB's", pd, one("spec.service", "{ports: [{name: mysql, port: 4000}]}"), []string{"service.ports of a PDGroup may only name client"}},
		{"a port of TiDB that is PD's", tidb, one("spec.service", "{ports: [{name: client, port: 4000}]}"), []string{"service.ports of a TiDBGroup may only name mysql and status"}},
		{"a port that does not exist", tidb, one("spec.service", "{ports: [{name: http, port: 80}]}"), []string{"spec.service.ports[0].name", "http", `"client", "mysql", "status"`}},
		{"source ranges without a load balancer", tidb, one("spec.service", "{loadBalancerSourceRanges: [10.0.0.0/8]}"), []string{"spec.service", "loadBalancerSourceRanges needs type LoadBalancer"}},
		{"a source range that is no CIDR", tidb, one("spec.service", "{type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0]}"), []string{"spec.service.loadBalancerSourceRanges[0]", "must be CIDRs such as 10.0.0.0/8"}},
		{"a load balancer class without a load balancer", tidb, one("spec.service", "{loadBalancerClass: x}"), []string{"spec.service", "loadBalancerClass needs type LoadBalancer"}},
		{"a traffic policy of a ClusterIP Service", tidb, one("spec.service", "{externalTrafficPolicy: Local}"), []string{"spec.service", "externalTrafficPolicy needs type NodePort or LoadBalancer"}},

		{"two families of addresses without both being wanted", tidb, one("spec.service", "{ipFamilies: [IPv6, IPv4]}"), []string{"spec.service", "two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack"}},
		{"two families of addresses of a single stack", pd, one("spec.service", "{ipFamilyPolicy: SingleStack, ipFamilies: [IPv6, IPv4]}"), []string{"spec.service", "two ipFamilies need ipFamilyPolicy"}},
		{"one family of addresses twice", tikv, one("spec.peerService", "{ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv6]}"), []string{"spec.peerService", "ipFamilies must differ"}},
		{"a family of addresses that there is not", tiflash, one("spec.peerService", "{ipFamilies: [IPv5]}"), []string{"spec.peerService.ipFamilies[0]", "IPv5", `"IPv4", "IPv6"`}},
		{"no family of addresses", cluster, one("spec.peerService", "{ipFamilies: []}"), []string{"spec.peerService.ipFamilies", "at least 1"}},
		{"a policy of families that there is not", cluster, one("spec.tidb[0].service", "{ipFamilyPolicy: Both}"), []string{"spec.tidb[0].service.ipFamilyPolicy", "Both", `"SingleStack", "PreferDualStack", "RequireDualStack"`}},

		{"a readiness command without its type", tidb, one("spec.readiness", "{type: HTTP, command: [true]}"), []string{"spec.readiness"}},
		{"a readiness type without its command", tidb, one("spec.readiness", "{type: Command}"), []string{"spec.readiness", "type Command needs it"}},
		{"a shutdown delay beyond an hour", tidb, one("spec.shutdown", "{delaySeconds: 4000}"), []string{"spec.shutdown.delaySeconds", "4000", "3600"}},
		{"a root password from nowhere", tidb, one("spec.initialization", "{}"), []string{"spec.initialization", "initialization is empty", "set rootPassword to Generate, or users.secret to the name of a Secret"}},
		{"a root password of another kind", tidb, one("spec.initialization", "{rootPassword: Empty}"), []string{"spec.initialization.rootPassword", "Generate"}},
		{"initial users from nowhere", tidb, one("spec.initialization", "{users: {}}"), []string{"spec.initialization.users.secret", "Required value"}},
		{"initial users in a badly named Secret", tidb, one("spec.initialization", "{users: {secret: My_People}}"), []string{"spec.initialization.users.secret", "My_People"}},
		{"initial users from a host that ends the quotes", tidb, one("spec.initialization", `{users: {secret: people, host: "%' x"}}`), []string{"spec.initialization.users.host", "%' x"}},
		{"initial users from a host of nothing", tidb, one("spec.initialization", `{users: {secret: people, host: ""}}`), []string{"spec.initialization.users.host"}},
		{"initial users of a cluster from nowhere", cluster, one("spec.tidb[0].initialization", "{users: {}}"), []string{"spec.tidb[0].initialization.users.secret", "Required value"}},
		{"bootstrap SQL without a key", tidb, one("spec.bootstrapSQL", "{name: sql}"), []string{"spec.bootstrapSQL.key", "Required value"}},
		{"bootstrap SQL in a badly named object", tidb, one("spec.bootstrapSQL", "{name: My_SQL, key: a.sql}"), []string{"spec.bootstrapSQL.name", "My_SQL"}},
		{"a server label that the node decides", tidb, one("spec.serverLabels", "{zone: a}"), []string{"spec.serverLabels", "may not set host, zone or region"}},
		{"a server label that the node decides, in capitals", tidb, one("spec.serverLabels", "{Zone: a}"), []string{"spec.serverLabels", "may not set host, zone or region", "remove it"}},
		{"a store label that the node decides", tikv, one("spec.storeLabels", "{zone: a}"), []string{"spec.storeLabels", "may not set host, zone, region"}},
		{"a store label that marks TiFlash", tikv, one("spec.storeLabels", "{engine: tiflash}"), []string{"spec.storeLabels", "engine"}},
		{"a store label that marks TiFlash, in capitals", tiflash, one("spec.storeLabels", "{Engine: tiflash}"), []string{"spec.storeLabels", "engine", "in capitals or not: remove it, or choose another key"}},
		{"a store label that keeps data away", tikv, one("spec.storeLabels", "{exclusive: reports}"), []string{"spec.storeLabels", "exclusive", "choose another key"}},
		{"a store label that the node decides, in capitals", cluster, one("spec.tikv[0].storeLabels", "{Zone: a}"), []string{"spec.tikv[0].storeLabels", "may not set host, zone, region"}},
		{"a store label that only spec.placement may set, in capitals", tikv, one("spec.storeLabels", "{K/tikvgroup: a}"), []string{"spec.storeLabels", "may not set"}},
		{"two store labels that are one to PD", tikv, one("spec.storeLabels", "{disk: a, other: c, Disk: b}"), []string{"spec.storeLabels", "must differ in more than capitals", "remove one"}},
		{"a label of a Service that belongs to the operators", tidb, one("spec.service", "{labels: {app.kubernetes.io/component: proxy}}"), []string{"spec.service.labels", "labels may not begin with groups.tidb.dev/ or app.kubernetes.io/", "choose another prefix"}},
		{"an annotation of a Service that belongs to the operators", cluster, one("spec.pd.service", "{annotations: {groups.tidb.dev/rendering: x}}"), []string{"spec.pd.service.annotations", "annotations may not begin with groups.tidb.dev/", "choose another prefix"}},
		{"a store label that PD does not take", tikv, one("spec.storeLabels", "{disk: solid state}"), []string{"spec.storeLabels", "PD's rule"}},
		{"a store label of TiFlash that PD does not take", tiflash, one("spec.storeLabels", "{'my disk': ssd}"), []string{"spec.storeLabels", "PD's rule"}},
		{"a group without a PDGroup", tikv, one("spec.pdGroup", ""), []string{"spec.pdGroup", "Required value"}},
		{"a PDGroup reference that is a string", tikv, one("spec.pdGroup", "basic-pd"), []string{"spec.pdGroup", "must be of type object"}},
		{"a PDGroup in another namespace", tikv, one("spec.pdGroup", "{name: other/basic-pd}"), []string{"spec.pdGroup.name", "other/basic-pd"}},
		{"a PDGroup reference with an empty name", tiflash, one("spec.pdGroup", `{name: ""}`), []string{"spec.pdGroup.name"}},

		{"a group's name that is too long for its pods", pd, one("metadata.name", strings.Repeat("a", 41)), []string{"metadata.name must be at most 40 characters"}},
		{"a group's name with a dot", tikv, one("metadata.name", "a.b"), []string{"metadata.name must be at most 40 characters of a-z, 0-9 and -"}},
		{"a group's name that begins with a digit, which no Service may", tidb, one("metadata.name", "1a"), []string{"begin with a letter"}},
		{"a cluster's name that is too long", cluster, one("metadata.name", strings.Repeat("a", 33)), []string{"metadata.name must be at most 32 characters"}},
		{"a cluster's and a group's name that are too long together", cluster, []change{{"metadata.name", strings.Repeat("a", 20)}, {"spec.tikv[0].name", strings.Repeat("b", 20)}}, []string{"metadata.name and spec.tikv[].name together", "34"}},
		{"a cluster's and a TiProxy group's name that are too long together", cluster, []change{{"metadata.name", strings.Repeat("a", 20)}, {"spec.tiproxy[0].name", strings.Repeat("b", 12)}}, []string{"metadata.name and spec.tiproxy[].name together", "31"}},
		{"a cluster's and a TiCDC group's name that are too long together", cluster, []change{{"metadata.name", strings.Repeat("a", 20)}, {"spec.ticdc[0].name", strings.Repeat("b", 14)}}, []string{"metadata.name and spec.ticdc[].name together", "33"}},
		{"two unnamed TiKV groups", cluster, one("spec.tikv[1]", "{volumes: [{name: tikv, storage: 1Gi}]}"), []string{"spec.tikv[1]", "Duplicate value"}},
		{"two TiKV groups of one name", cluster, one("spec.tikv", "[{name: a, volumes: [{name: tikv, storage: 1Gi}]}, {name: a, volumes: [{name: tikv, storage: 1Gi}]}]"), []string{"spec.tikv[1]", "Duplicate value"}},
		{"a group's name in capitals", cluster, one("spec.tidb[0].name", "Reports"), []string{"spec.tidb[0].name", "Reports"}},
		{"a cluster without PD", cluster, one("spec.pd", ""), []string{"spec.pd", "Required value"}},
		{"a cluster whose PD has no volume", cluster, one("spec.pd.volumes", ""), []string{"spec.pd", "volumes must have exactly one data volume"}},
		{"a cluster whose TiKV has no volume", cluster, one("spec.tikv[0].volumes", ""), []string{"spec.tikv[0]", "volumes must have exactly one data volume"}},
		{"a cluster's TiDB group with PD's port", cluster, one("spec.tidb[0].service", "{ports: [{name: client}]}"), []string{"spec.tidb[0]", "may only name mysql and status"}},
		{"a cluster's TiFlash group that mounts over its configuration", cluster, one("spec.tiflash[0].volumes[1]", "{name: x, storage: 1Gi, mounts: [{mountPath: /etc/tiflash/x}]}"), []string{"spec.tiflash[0]", "configuration directory"}},
		{"a PDGroup reference inside a cluster", cluster, one("spec.tikv[0].pdGroup", "{name: other}"), []string{`unknown field "spec.tikv[0].pdGroup"`}},

		{"an Instance in a negative slot", inst, one("spec.slot", "-1"), []string{"spec.slot", "-1"}},
		{"an Instance without a pod", inst, one("spec.podTemplate", ""), []string{"spec.podTemplate", "Required value"}},
		{"an Instance with an unknown claim policy", inst, one("spec.claimLoss", "Ignore"), []string{"spec.claimLoss", "Ignore", `"Recreate", "Hold"`}},
	}
}

func TestBadInputIsRefusedWithTheFieldAndTheRemedy(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	require.GreaterOrEqual(t, len(badInputs()), 40)
	for _, bad := range badInputs() {
		t.Run(bad.name, func(t *testing.T) {
			err := c.Create(t.Context(), apply(t, valid(t, bad.kind, namespace), bad.changes...), client.DryRunAll)
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "refused for another reason: %v", err)
			assert.NotContains(t, err.Error(), "no such overload")
			for _, fragment := range bad.want {
				assert.ErrorContains(t, err, fragment)
			}
		})
	}
}

// manyLabels returns labels with long keys.
func manyLabels(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d: x", strings.Repeat("k", 60), i))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func TestGoodInputIsAccepted(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	for _, good := range []struct {
		name    string
		kind    string
		changes []change
	}{
		{"the smallest PDGroup", pd, nil},
		{"the smallest TiKVGroup", tikv, nil},
		{"the smallest TiDBGroup", tidb, nil},
		{"the smallest TiFlashGroup", tiflash, nil},
		{"the smallest TiProxyGroup", tiproxy, nil},
		{"the smallest TiCDCGroup", ticdc, nil},
		{"the smallest Instance", inst, nil},
		{"the smallest TidbCluster", cluster, nil},
		{"a single PD member", pd, one("spec.replicas", "1")},
		{"a group of no stores", tikv, one("spec.replicas", "0")},
		{"the longest name of a group", tikv, one("metadata.name", strings.Repeat("a", 40))},
		{"an image of a private registry by digest", pd, one("spec.image", "registry.example.com:5000/mirror/pd@sha256:"+strings.Repeat("0", 64))},
		{"integer and fractional resources", tikv, one("spec.resources", "{requests: {cpu: 2, memory: 4Gi}, limits: {cpu: '2.5'}}")},
		{"a toleration of everything", pd, one("spec.tolerations", "[{operator: Exists}]")},
		{"several mounts of one volume", tidb, one("spec.volumes", "[{name: logs, storage: 10Gi, mounts: [{mountPath: /var/log/a, subPath: a}, {mountPath: /var/log/b, subPath: b}]}]")},
		{"four data volumes of TiFlash", tiflash, one("spec.volumes", "[{name: a, storage: 1Gi}, {name: b, storage: 1Gi}, {name: c, storage: 1Gi}, {name: d, storage: 1Gi}]")},
		{"a public load balancer", tidb, one("spec.service", "{type: LoadBalancer, annotations: {a: b}, loadBalancerClass: x, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8'], externalTrafficPolicy: Local, ports: [{name: mysql, port: 3306, nodePort: 30001}]}")},
		{"both families of addresses", tidb, []change{{"spec.preferIPv6", "true"}, {"spec.peerService", "{ipFamilyPolicy: PreferDualStack}"}, {"spec.service", "{ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4]}"}}},
		{"a cluster by IPv6", cluster, []change{{"spec.preferIPv6", "true"}, {"spec.peerService", "{ipFamilies: [IPv6]}"}}},
		{"the longest cluster domain", tikv, one("spec.clusterDomain", strings.Repeat("x", 63))},
		{"a readiness command", tidb, one("spec.readiness", "{type: Command, command: [/bin/true]}")},
		{"an affinity and an overlay as in a pod", pd, []change{{"spec.affinity", "{podAntiAffinity: {}}"}, {"spec.overlay", "{spec: {containers: [{name: pd, stdin: true}]}}"}, {"spec.securityContext", "{runAsUser: 0}"}}},
		{"a claim kept for a fraction of a second", pd, one("spec.persistentVolumeClaimRetentionPolicy", "{retainFor: 1.5s}")},
		{"as many store labels as there may be", tikv, one("spec.storeLabels", manyLabels(32))},
		{"store labels with a prefix", tikv, one("spec.storeLabels", "{example.com/disk: ssd}")},
		{"a spread over three zones", tikv, one("spec.topologySpreadConstraints", "[{topologyKey: topology.kubernetes.io/zone, minDomains: 3}]")},
		{"named groups beside the main one", cluster, one("spec.tikv[1]", "{name: archive, volumes: [{name: tikv, storage: 1Gi}]}")},
		{"the longest names of a cluster and a group", cluster, []change{{"metadata.name", strings.Repeat("a", 14)}, {"spec.tikv[0].name", strings.Repeat("b", 20)}}},
		{"an entry with its own version", cluster, one("spec.tidb[0].version", "v8.5.8")},
	} {
		t.Run(good.name, func(t *testing.T) {
			require.NoError(t, c.Create(t.Context(), apply(t, valid(t, good.kind, namespace), good.changes...), client.DryRunAll))
		})
	}
}
