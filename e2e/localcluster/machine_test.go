package localcluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMountsBelow(t *testing.T) {
	const info = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /srv/local/nodes/a rw - tmpfs tmpfs rw
31 30 0:41 / /srv/local/nodes/a/b\040c rw - overlay overlay rw
32 22 0:42 / /srv/local-other/x rw - tmpfs tmpfs rw
33 22 0:42 / /srv/local rw - tmpfs tmpfs rw
`
	assert.Equal(t, []string{"/srv/local/nodes/a/b c", "/srv/local/nodes/a"}, mountsBelow(info, "/srv/local"),
		"innermost first; neither the directory itself nor one with a longer name")
	assert.Equal(t, []string{"/srv/local/nodes/a/b c"}, mountsBelow(info, "/srv/local", "/srv/local/nodes/a"),
		"a disk that is kept loses what is mounted below it")
}

func TestHierarchies(t *testing.T) {
	for _, tc := range []struct {
		name, info string
		want       []hierarchy
	}{
		{
			name: "version 1 with a unified hierarchy beside it",
			info: "40 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"41 30 0:31 / /sys/fs/cgroup/cpuset rw shared:5 - cgroup cgroup rw,cpuset\n" +
				"42 30 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/memory"},
				{mount: "/sys/fs/cgroup/cpuset", cpuset: true},
				{mount: "/sys/fs/cgroup/unified", v2: true},
			},
		},
		{
			name: "version 2",
			info: "42 30 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
			want: []hierarchy{{mount: "/sys/fs/cgroup", v2: true}},
		},
		{name: "a machine without any", info: "22 1 254:0 / / rw - ext4 /dev/vda rw\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, parseHierarchies(tc.info))
		})
	}
}

func TestMissingPackagesAreNamedOnceWithTheCommand(t *testing.T) {
	missing := missingPackages(listRequirements(), func(file string) bool { return file != "ctr" && file != "containerd" && file != "runc" })
	assert.Equal(t, []string{"containerd", "runc"}, missing)
	assert.Equal(t, "apt-get update && apt-get install -y --no-install-recommends containerd runc", installCommand(missing))
	assert.Empty(t, missingPackages(listRequirements(), func(string) bool { return true }))
	require.ErrorContains(t, needsRoot(missing), "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends containerd runc'")
	require.ErrorContains(t, needsRoot(nil), "run the command with sudo")
}

func TestOverlapNamesTheInterface(t *testing.T) {
	parse := func(text string) []link {
		var l []link
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		return l
	}
	assert.Empty(t, findOverlap(parse(`[{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.0.2.2","prefixlen":24},{"family":"inet6","local":"fd00::2","prefixlen":64}]}]`)))
	assert.Contains(t, findOverlap(parse(`[{"ifname":"vpn0","addr_info":[{"family":"inet","local":"10.1.2.3","prefixlen":8}]}]`)), "vpn0 has 10.1.2.3/8")
	assert.Empty(t, findOverlap(parse(`[{"ifname":"tgl0","addr_info":[{"family":"inet","local":"10.244.0.1","prefixlen":16}]}]`)), "the bridge is ours")
}

func TestABridgeAddressIdentifiesItsCluster(t *testing.T) {
	one, other := layout{root: "/srv/one"}.bridgeMAC(), layout{root: "/srv/other"}.bridgeMAC()
	assert.NotEqual(t, one, other)
	assert.Regexp(t, "^02(:[0-9a-f]{2}){5}$", one)
}

func TestParseImages(t *testing.T) {
	const out = `REF                          TYPE                                    DIGEST         SIZE   PLATFORMS   LABELS
docker.io/pingcap/pd:v8.5.7  application/vnd.oci.image.manifest.v1+json sha256:aa11 1 MiB linux/amd64 -
sha256:cc33                  application/vnd.oci.image.manifest.v1+json sha256:aa11 1 MiB linux/amd64 -
`
	assert.Equal(t, map[string]string{"docker.io/pingcap/pd:v8.5.7": "sha256:aa11", "sha256:cc33": "sha256:aa11"}, parseImages(out))
}

func TestNodeReadyIgnoresConditionsFromBeforeItsKubeletStarted(t *testing.T) {
	started := time.Date(2026, 1, 1, 10, 0, 0, 600e6, time.UTC)
	node := func(status corev1.ConditionStatus, heard time.Time) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(heard), Reason: "R", Message: "m",
		}}}}
	}
	for _, tc := range []struct {
		name string
		node *corev1.Node
		want bool
	}{
		{"a node that never reported", &corev1.Node{}, false},
		{"Ready from before", node(corev1.ConditionTrue, started.Add(-2*time.Second)), false},
		{"Ready in the second in which it started", node(corev1.ConditionTrue, started.Truncate(time.Second)), true},
		{"Ready after it", node(corev1.ConditionTrue, started.Add(time.Second)), true},
		{"not ready", node(corev1.ConditionFalse, started.Add(time.Second)), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, why := nodeReady(tc.node, started)
			assert.Equal(t, tc.want, got)
			assert.NotEmpty(t, why)
		})
	}
}

func TestVolumeFollowsClaimAndClass(t *testing.T) {
	retain := corev1.PersistentVolumeReclaimRetain
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "u-1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}},
		},
	}
	v := volumeFor(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, ReclaimPolicy: &retain}, "/srv/volumes")
	assert.Equal(t, "pvc-u-1", v.Name)
	assert.Equal(t, "/srv/volumes/pvc-u-1", v.Spec.Local.Path)
	assert.Equal(t, retain, v.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, "3Gi", v.Spec.Capacity.Storage().String())
	assert.Equal(t, claim.UID, v.Spec.ClaimRef.UID)
}

func TestOnlyOneCommandHoldsTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(file)
	require.NoError(t, err)
	_, err = tryLock(file)
	require.ErrorIs(t, err, errLocked)

	// Down removes the file while it holds the lock: who opened it before must
	// not believe to hold anything.
	waiting, err := os.Open(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	assert.False(t, isSameFile(waiting, file))
	require.NoError(t, waiting.Close())
	require.NoError(t, first.Close())
	second, err := tryLock(file)
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

func TestStraysAreOnlyRemovedIfTheyPointIntoTheStateDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/srv/local/pod-logs/x", filepath.Join(dir, "ours.log")))
	require.NoError(t, os.Symlink("/srv/local-other/x", filepath.Join(dir, "other.log")))
	ours := func(file string) bool { return pointsInto(file, "/srv/local/") }
	require.NoError(t, removeEntries(dir, ours))
	require.NoError(t, removeEmpty(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "other.log", entries[0].Name())
	require.NoError(t, os.Remove(filepath.Join(dir, "other.log")))
	require.NoError(t, removeEmpty(dir))
	assert.NoDirExists(t, dir)
}

func TestADiskWithoutRoomIsNamedBeforeItIsFull(t *testing.T) {
	require.NoError(t, checkFreeSpace("/srv", roomNeeded))
	require.ErrorContains(t, checkFreeSpace("/srv", roomNeeded-1), "the disk of /srv has 10239 MiB free, and images, logs and claims take up to 10240: remove")

	l := layout{root: t.TempDir()}
	require.NoError(t, os.MkdirAll(l.volumes(), 0o755))
	require.NoError(t, l.checkRoom(), "a cluster that has been there before has taken its room")
}
