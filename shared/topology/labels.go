package topology

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// zoneLabel is the label that TiDB prefers near replicas by.
const zoneLabel = "zone"

// wellKnown returns the node label that a short location label stands for.
func wellKnown(label string) string {
	switch label {
	case "region":
		return corev1.LabelTopologyRegion
	case zoneLabel:
		return corev1.LabelTopologyZone
	case "host":
		return corev1.LabelHostname
	}
	return "topology.kubernetes.io/" + label
}

// NodeLabel returns the label of nodes that a location label stands for.
func NodeLabel(label string) string { return wellKnown(label) }

// fromNode looks a location label up among the labels of a node. A short name
// that Kubernetes has a label for means that one; any other is the name of a
// node label, with or without the prefix of the topology labels.
func fromNode(node map[string]string, label string) string {
	candidates := []string{label, wellKnown(label)}
	switch label {
	case "region", zoneLabel, "host":
		candidates = []string{wellKnown(label), label}
	}
	for _, key := range candidates {
		if value := node[key]; value != "" {
			return value
		}
	}
	return ""
}

// StoreLabels returns the labels that a store should carry in PD: one for each
// location label that its node knows, and the user's own, which never override
// what the node says. Labels without a value are left out.
func StoreLabels(node map[string]string, locationLabels []string, user map[string]string) map[string]string {
	labels := make(map[string]string, len(locationLabels)+len(user))
	for key, value := range user {
		if key != "" && value != "" {
			labels[key] = value
		}
	}
	for _, label := range locationLabels {
		value := fromNode(node, label)
		if value == "" {
			continue
		}
		// PD compares keys without case: "Zone" of the user is "zone" of the
		// node, and only one of them may stay.
		maps.DeleteFunc(labels, func(key, _ string) bool { return strings.EqualFold(key, label) })
		labels[label] = value
	}
	return labels
}

// ServerLabels returns the labels of a TiDB: the zone of its node and the
// user's own, which never override it.
func ServerLabels(node, user map[string]string) map[string]string {
	return StoreLabels(node, []string{zoneLabel}, user)
}

// MissingLabels returns the labels of want that have lacks or has at another value.
// What else is in have belongs to another owner and is left alone.
func MissingLabels(want, have map[string]string) map[string]string {
	// PD keeps the case of the key that was there first, so an exact
	// comparison would set the same label forever.
	folded := make(map[string]string, len(have))
	for key, value := range have {
		folded[strings.ToLower(key)] = value
	}
	missing := map[string]string{}
	for key, value := range want {
		if now, ok := folded[strings.ToLower(key)]; !ok || now != value {
			missing[key] = value
		}
	}
	return missing
}
