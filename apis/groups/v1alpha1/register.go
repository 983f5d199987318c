package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind of the suite.
const GroupName = "groups.tidb.dev"

// Version is the API version of this package.
const Version = "v1alpha1"

// Kinds that are no groups, as they stand in objects and owner references; each group's
// file has its own.
const (
	KindInstance    = "Instance"
	KindTidbCluster = "TidbCluster"
)

// OperatorBackup is the name of the operator of Backups, BackupSchedules, LogBackups and
// Restores.
const OperatorBackup = "backup"

// OperatorAll is the name of the program that runs all operators in one process.
const OperatorAll = "all"

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	gv := GroupVersion()
	s.AddKnownTypes(gv, &Instance{}, &InstanceList{}, &TidbCluster{}, &TidbClusterList{},
		&Backup{}, &BackupList{}, &BackupSchedule{}, &BackupScheduleList{}, &Restore{}, &RestoreList{}, &LogBackup{}, &LogBackupList{})
	for _, c := range ComponentTable() {
		s.AddKnownTypes(gv, c.New(), c.NewList())
	}
	metav1.AddToGroupVersion(s, gv)
	return nil
}
