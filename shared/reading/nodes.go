package reading

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/topology"
)

// observeNodes reads the labels of the nodes that the Instances run on, which of
// them are cordoned, and on which something may start. A namespaced installation may
// not read nodes and goes without.
func observeNodes(ctx context.Context, c client.Reader, s *observation.Snapshot) error {
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	s.Nodes, s.Cordoned, s.SchedulableNodes = map[string]map[string]string{}, map[string]bool{}, []corev1.Node{}
	for _, node := range list.Items {
		if !node.Spec.Unschedulable {
			s.SchedulableNodes = append(s.SchedulableNodes, node)
		}
		if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Status.NodeName == node.Name }) {
			continue
		}
		s.Nodes[node.Name] = node.Labels
		if node.Spec.Unschedulable {
			s.Cordoned[node.Name] = true
		}
	}
	if len(s.Cordoned) == 0 {
		return nil
	}
	templates := decodeTemplates(s.WithSiblings())
	for name := range s.Cordoned {
		s.Cordoned[name] = canLeaveNode(name, list.Items, s, templates)
	}
	return nil
}

// canLeaveNode reports whether another node takes the pod of each Instance on a node, and its volumes. One that is
// stopped without would stay down until the node is uncordoned, and one that may come back would be stopped again
// and again.
func canLeaveNode(node string, all []corev1.Node, s *observation.Snapshot, templates map[*v1alpha1.Instance]*corev1.PodTemplateSpec) bool {
	return !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		if i.Status.NodeName != node {
			return false
		}
		if templates[i] == nil {
			return true
		}
		var fellows []topology.Fellow
		for other, template := range templates {
			if other != i && other.Status.NodeName != "" {
				fellows = append(fellows, topology.Fellow{Node: other.Status.NodeName, Labels: template.Labels, Ports: topology.NodePorts(template), Requests: topology.SumRequests(template)})
			}
		}
		fit := topology.NewFit(templates[i])
		return fit.ToleratesCordon() || !fit.TakesBeside(selectUsableNodes(s.SchedulableNodes, i.Status.Volumes), all, fellows)
	})
}

// decodeTemplates returns the pod templates of some Instances, without those that cannot be read.
func decodeTemplates(instances []*v1alpha1.Instance) map[*v1alpha1.Instance]*corev1.PodTemplateSpec {
	out := map[*v1alpha1.Instance]*corev1.PodTemplateSpec{}
	for _, i := range instances {
		template := &corev1.PodTemplateSpec{}
		if json.Unmarshal(i.Spec.PodTemplate.Raw, template) == nil {
			out[i] = template
		}
	}
	return out
}

// selectUsableNodes returns those of some nodes on which all of the volumes can be used.
func selectUsableNodes(nodes []corev1.Node, volumes []v1alpha1.VolumeStatus) []corev1.Node {
	for _, v := range volumes {
		if len(v.NodeSelectors) == 0 {
			continue
		}
		var selectors []labels.Selector
		for _, text := range v.NodeSelectors {
			if selector, err := labels.Parse(text); err == nil {
				selectors = append(selectors, selector)
			}
		}
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool {
			return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(n.Labels)) })
		})
	}
	return nodes
}

// lostNodes finds pods that cannot be scheduled because a volume of theirs can only be
// used on nodes that are gone. Deleting a Node says that it never comes back.
func lostNodes(ctx context.Context, env operator.Env, s observation.Snapshot) (map[string]string, error) {
	out := map[string]string{}
	for _, i := range s.Instances {
		pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
		if pod == nil || pod.Reason != v1alpha1.ReasonPodUnschedulable {
			continue
		}
		for _, v := range i.Status.Volumes {
			gone := len(v.Nodes) > 0
			for _, name := range v.Nodes {
				there, err := nodeExists(ctx, env, name)
				if err != nil {
					return nil, err
				}
				gone = gone && !there
			}
			if gone {
				out[i.Name] = strings.Join(v.Nodes, ", ")
			}
		}
	}
	return out, nil
}

// nodeExists reports whether there is a node of a name, or of a host name, which may
// differ. A node that a cache does not show is looked for in the API server.
func nodeExists(ctx context.Context, env operator.Env, name string) (bool, error) {
	err := env.Find(ctx, client.ObjectKey{Name: name}, &corev1.Node{})
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return false, fmt.Errorf("get Node %s: %w", name, err)
		}
		return true, nil
	}
	var list corev1.NodeList
	if err := env.Live.List(ctx, &list, client.MatchingLabels{corev1.LabelHostname: name}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Nodes of host name %s: %w", name, err)
	}
	return len(list.Items) > 0, nil
}
