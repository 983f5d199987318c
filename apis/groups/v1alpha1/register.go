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

// Kind names, as they stand in objects and owner references.
const (
	KindPDGroup      = "PDGroup"
	KindTiKVGroup    = "TiKVGroup"
	KindTiDBGroup    = "TiDBGroup"
	KindTiFlashGroup = "TiFlashGroup"
	KindInstance     = "Instance"
	KindTidbCluster  = "TidbCluster"
)

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: Version}
}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	gv := GroupVersion()
	s.AddKnownTypes(gv,
		&PDGroup{}, &PDGroupList{},
		&TiKVGroup{}, &TiKVGroupList{},
		&TiDBGroup{}, &TiDBGroupList{},
		&TiFlashGroup{}, &TiFlashGroupList{},
		&Instance{}, &InstanceList{},
		&TidbCluster{}, &TidbClusterList{},
	)
	metav1.AddToGroupVersion(s, gv)
	return nil
}
