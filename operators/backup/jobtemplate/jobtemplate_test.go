package jobtemplate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func logBackup(name, uid string) *v1alpha1.LogBackup {
	return &v1alpha1.LogBackup{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

// docs/reference/backup.md has these names.
func TestBR04TheNamesOfJobs(t *testing.T) {
	named := metav1.ObjectMeta{Name: "monday"}
	for name, c := range map[string]struct {
		run       v1alpha1.Run
		component string
		attempt   int32
	}{
		"monday-backup-1":   {&v1alpha1.Backup{ObjectMeta: named}, ComponentOf(v1alpha1.KindBackup), 1},
		"monday-backup-2":   {&v1alpha1.Backup{ObjectMeta: named}, ComponentOf(v1alpha1.KindBackup), 2},
		"monday-restore-1":  {&v1alpha1.Restore{ObjectMeta: named}, ComponentOf(v1alpha1.KindRestore), 1},
		"monday-log-7":      {&v1alpha1.LogBackup{ObjectMeta: named}, ComponentOf(v1alpha1.KindLogBackup), 7},
		"monday-clean-1":    {&v1alpha1.Backup{ObjectMeta: named}, ComponentClean, 1},
		"monday-logclean-1": {&v1alpha1.LogBackup{ObjectMeta: named}, ComponentClean, 1},
	} {
		assert.Equal(t, name, Name(c.run, c.component, c.attempt))
	}
}

// A task outlives the object that asked for it, so its name must be no other's.
func TestBR01ATaskIsOfOneLogBackupAlone(t *testing.T) {
	for name, c := range map[string]struct {
		of   *v1alpha1.LogBackup
		want string
	}{
		"of its name and UID":              {logBackup("pitr", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"), "pitr_0a1b2c3d"},
		"another one of the name":          {logBackup("pitr", "99887766-4e5f-6071-8293-a4b5c6d7e8f9"), "pitr_99887766"},
		"of letters that BR takes":         {logBackup("pitr-of-shop", "0a1b2c3d-4e5f"), "pitr_of_shop_0a1b2c3d"},
		"of a UID that begins with dashes": {logBackup("pitr", "0a-1b-2c-3d-4e"), "pitr_0a1b2c3d"},
		"of a short UID":                   {logBackup("pitr", "u1"), "pitr_u1"},
	} {
		assert.Equal(t, c.want, TaskName(c.of), name)
	}
}

func TestBR04FilesLieBelowThePrefixOfTheirStorage(t *testing.T) {
	for name, c := range map[string]struct {
		storage v1alpha1.Storage
		want    string
	}{
		"a bucket of S3":           {v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "a/b"}}, "a/b/monday"},
		"a bucket of Google":       {v1alpha1.Storage{GCS: &v1alpha1.GCSStorage{Bucket: "b", Prefix: "c"}}, "c/monday"},
		"a container of Azure":     {v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Container: "b", Prefix: "d/"}}, "d/monday"},
		"a volume":                 {v1alpha1.Storage{PVC: &v1alpha1.PVCStorage{ClaimName: "b", Path: "e"}}, "e/monday"},
		"a bucket without prefix":  {v1alpha1.Storage{S3: &v1alpha1.S3Storage{Bucket: "b"}}, "monday"},
		"a volume without a path":  {v1alpha1.Storage{PVC: &v1alpha1.PVCStorage{ClaimName: "b"}}, "monday"},
		"a storage of no one kind": {v1alpha1.Storage{}, "monday"},
	} {
		assert.Equal(t, c.want, Files{Storage: c.storage, Folder: "monday"}.Path(), name)
	}
}

// BR-04: while clients are kept out only the headless Service leads to a server.
func TestBR04WhereTheDatabaseIsReached(t *testing.T) {
	group := func(port int32, closed bool, domain string) *v1alpha1.TiDBGroup {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "db"}}
		g.Spec.Service = &v1alpha1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Closed: closed, Ports: []v1alpha1.ServicePort{{Name: "mysql", Port: port}}}
		g.Spec.ClusterDomain, g.Status.Endpoint = domain, "203.0.113.7:3306"
		return g
	}
	for name, c := range map[string]struct {
		group      *v1alpha1.TiDBGroup
		host, port string
	}{
		"by the Service, not its load balancer": {group(3306, false, ""), "basic-tidb.db.svc", "3306"},
		"at the usual port":                     {group(0, false, ""), "basic-tidb.db.svc", "4000"},
		"by the servers' while it is closed":    {group(3306, true, ""), "basic-tidb-peer.db.svc", "4000"},
		"in the cluster's domain":               {group(0, true, "cluster.local"), "basic-tidb-peer.db.svc.cluster.local", "4000"},
	} {
		host, port := DatabaseAddress(c.group)
		assert.Equal(t, [2]string{c.host, c.port}, [2]string{host, port}, name)
	}
}
