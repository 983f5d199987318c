package reconciler

// Rights of every operator of groups, beside those to write its own kind: see make generate.
//
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;ticdcgroups;tidbgroups;tiflashgroups;tikvgroups;tiproxygroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
