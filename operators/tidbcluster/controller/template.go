package controller

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// renderGroups returns the group objects of a cluster in the order of the component table. Each
// is its entry of the spec; what the entry leaves out comes from the cluster's spec.
func renderGroups(c *v1alpha1.TidbCluster) []v1alpha1.Group {
	var out []v1alpha1.Group
	pd := v1alpha1.LocalReference{Name: names.Group(c.Name, v1alpha1.ComponentPD, "")}
	for _, component := range v1alpha1.ComponentTable() {
		for _, e := range component.Entries(&c.Spec, pd) {
			setMetadata(e.Group, c, component.Component, e.Name)
			out = append(out, e.Group)
		}
	}
	for _, g := range out {
		spec := g.GetComponentSpec()
		if spec.Version == "" {
			spec.Version = c.Spec.Version
		}
		// Times in RFC 3339 and UTC sort as texts: the later request counts.
		spec.RestartedAt = max(spec.RestartedAt, c.Spec.RestartedAt)
		if spec.Disruption == nil {
			spec.Disruption = c.Spec.Disruption.DeepCopy()
		}
		spec.ClusterDomain = cmp.Or(spec.ClusterDomain, c.Spec.ClusterDomain)
		spec.PreferIPv6 = spec.PreferIPv6 || c.Spec.PreferIPv6
		if spec.PeerService == nil {
			spec.PeerService = c.Spec.PeerService.DeepCopy()
		}
		// An empty struct of an entry overrides the cluster's value. The group gets none: it
		// would keep an empty struct when the entry drops it.
		if equality.Semantic.DeepEqual(spec.Disruption, &v1alpha1.Disruption{}) {
			spec.Disruption = nil
		}
		if equality.Semantic.DeepEqual(spec.PeerService, &v1alpha1.IPFamilies{}) {
			spec.PeerService = nil
		}
		info, _ := v1alpha1.LookupComponent(g.GroupKind())
		if tls := g.GetTLS(); c.Spec.TLS != nil && tls != nil && !info.IgnoresCommonNames && len(tls.AllowedCommonNames) == 0 {
			tls.AllowedCommonNames = slices.Clone(c.Spec.TLS.AllowedCommonNames)
		}
		spec.Paused = spec.Paused || c.Spec.Paused
		spec.Suspended = spec.Suspended || c.Spec.Suspended
	}
	return out
}

// isScaledByOthers reports whether a group's entry leaves the number of its members
// to others.
func isScaledByOthers(g v1alpha1.Group) bool {
	tidb, ok := g.(*v1alpha1.TiDBGroup)
	return ok && tidb.Spec.Replicas == nil
}

// setMetadata gives a group its name, labels and owner.
func setMetadata(g v1alpha1.Group, c *v1alpha1.TidbCluster, component, name string) {
	g.SetName(names.Group(c.Name, component, name))
	g.SetNamespace(c.Namespace)
	g.SetLabels(map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		v1alpha1.LabelName:      "tidb",
		v1alpha1.LabelComponent: component,
		v1alpha1.LabelUmbrella:  c.Name,
	})
	g.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion().WithKind(v1alpha1.KindTidbCluster))})
}
