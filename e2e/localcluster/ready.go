package localcluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"
)

//go:embed manifests/addons.yaml
var addons []byte

// Limits on what is waited for through the API.
const (
	addonsLimit = 60 * time.Second
	nodeLimit   = 90 * time.Second
	dnsLimit    = 120 * time.Second
)

// applyAddons applies the manifests that a cluster needs to be one.
func (c *Cluster) applyAddons(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, addonsLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, c.bin("kubectl"), "--kubeconfig", c.Kubeconfig(), "apply", "--server-side", "--force-conflicts",
		"--field-manager=localcluster", "-f", "-")
	cmd.Env = c.processes.toolEnv()
	cmd.Stdin = bytes.NewReader(addons)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apply the cluster's own manifests: %w\n%s", err, lastLines(out.String(), 15))
	}
	return nil
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// awaitReady waits until every node is Ready and DNS is served.
func (c *Cluster) awaitReady(ctx context.Context) error {
	for _, n := range listNodes() {
		if err := c.awaitNode(ctx, n.Name); err != nil {
			return err
		}
	}
	c.say("%d nodes are Ready", len(listNodes()))
	client, err := c.client()
	if err != nil {
		return err
	}
	deployments := client.AppsV1().Deployments(metav1.NamespaceSystem)
	err = waitForObject(ctx, dnsLimit, expected{"Deployment kube-system/coredns to be available", "coredns", &appsv1.Deployment{}}, source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return deployments.List(ctx, o)
		},
		watch: deployments.Watch,
	}, func(o runtime.Object) (bool, string) {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			return false, "no Deployment"
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0 && d.Status.UpdatedReplicas > 0,
			fmt.Sprintf("%d of %d replicas available", d.Status.AvailableReplicas, d.Status.Replicas)
	})
	if err == nil {
		err = awaitDNS(ctx)
	}
	if err != nil {
		return errors.Join(err, c.describePods(ctx, client))
	}
	return nil
}

// awaitDNS asks the cluster's DNS from the host. The Deployment alone does not
// tell: right after a crash its status still is the one from before. The answer
// also shows that Services can be reached from here.
func awaitDNS(ctx context.Context) error {
	const name = "kubernetes.default.svc.cluster.local."
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(serviceDNS, "53"))
	}}
	err := pollUntilDone(ctx, dnsLimit, func(ctx context.Context) (bool, error) {
		// A lost packet must not cost the resolver's own timeout of 5 s.
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		found, err := resolver.LookupHost(ctx, name)
		if err == nil && !slices.Contains(found, serviceAPI) {
			err = fmt.Errorf("%s is %s", name, strings.Join(found, ", "))
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for DNS at %s to answer: %w", serviceDNS, err)
	}
	return nil
}

// awaitNode waits for one node, and shows its kubelet's log if it stays away.
func (c *Cluster) awaitNode(ctx context.Context, name string) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	// A node that is started again still looks Ready from before its loss, until
	// its kubelet reports: only what is newer than its process counts.
	id, running := c.processes.recorded(name + "/kubelet")
	if !running {
		return fmt.Errorf("wait for node %s: its kubelet does not run; last lines of its log:\n%s", name, readTail(c.layout.logFile(name+"/kubelet")))
	}
	since, err := id.startedAt(time.Now())
	if err != nil {
		return fmt.Errorf("wait for node %s: %w", name, err)
	}
	list := client.CoreV1().Nodes()
	err = waitForObject(ctx, nodeLimit, expected{"node " + name + " to be Ready", name, &corev1.Node{}}, source{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list.List(ctx, o) },
		watch: list.Watch,
	}, func(o runtime.Object) (bool, string) {
		n, ok := o.(*corev1.Node)
		if !ok {
			return false, "no Node"
		}
		return nodeReady(n, since)
	})
	if err != nil {
		return fmt.Errorf("%w; last lines of its kubelet's log:\n%s", err, readTail(c.layout.logFile(name+"/kubelet")))
	}
	return nil
}

// nodeReady judges a node by what its kubelet said after since. Times in the API
// have no fractions of a second.
func nodeReady(n *corev1.Node, since time.Time) (bool, string) {
	for _, cond := range n.Status.Conditions {
		if cond.Type != corev1.NodeReady {
			continue
		}
		if cond.Status == corev1.ConditionTrue && cond.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
			return false, "its kubelet has not reported since it was started"
		}
		return cond.Status == corev1.ConditionTrue, cond.Reason + ": " + cond.Message
	}
	return false, "it has not reported yet"
}

// source is where await gets objects from.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// expected is what await waits for: what is to become of it, its name, and an empty one.
type expected struct {
	what, name string
	kind       runtime.Object
}

// waitForObject watches one named object until a condition holds. The error tells what
// was waited for and how far it was.
func waitForObject(ctx context.Context, limit time.Duration, o expected, s source, done func(runtime.Object) (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	selector := fields.OneTermEqualSelector("metadata.name", o.name).String()
	only := func(o metav1.ListOptions) metav1.ListOptions { o.FieldSelector = selector; return o }
	last := "it does not exist"
	_, err := toolswatch.UntilWithSync(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.list(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.watch(ctx, only(o))
		},
	}, o.kind, nil, func(e watch.Event) (bool, error) {
		if e.Type == watch.Deleted {
			last = "it was deleted"
			return false, nil
		}
		ok, state := done(e.Object)
		last = state
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s, at most %s: %s: %w", o.what, limit, last, err)
	}
	return nil
}

// describePods returns an error that tells how the pods of the system are.
func (c *Cluster) describePods(ctx context.Context, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look at pods: %w", err)
	}
	var lines []string
	for _, p := range pods.Items {
		line := fmt.Sprintf("pod %s on %s: %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil {
				line += fmt.Sprintf(", %s waiting: %s %s", s.Name, w.Reason, w.Message)
			}
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		lines = append(lines, "no pod was created")
	}
	return errors.New(strings.Join(lines, "\n"))
}
