package localcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listDaemons lists every daemon, in the order in which they depend on each other.
func listDaemons() []string {
	all := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "volumes", "kube-proxy"}
	for _, n := range listNodes() {
		all = append(all, n.Name+"/containerd", n.Name+"/kubelet")
	}
	return all
}

// statusLimit bounds the question to kube-apiserver.
const statusLimit = 5 * time.Second

// Status prints the daemons, the nodes and where the kubeconfig is. It changes
// nothing and returns whether everything runs and every node is Ready.
func (c *Cluster) Status(ctx context.Context, out io.Writer) (healthy bool, err error) {
	if _, err := os.Stat(c.layout.mark()); err != nil {
		_, err := fmt.Fprintf(out, "no cluster in %s\n", c.layout.root)
		return false, err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	var b strings.Builder
	healthy = true
	b.WriteString("PROCESS\tPID\tSTATE\n")
	for _, name := range listDaemons() {
		if id, ok := c.processes.recorded(name); ok {
			fmt.Fprintf(&b, "%s\t%d\trunning\n", name, id.PID)
		} else {
			healthy = false
			fmt.Fprintf(&b, "%s\t-\tnot running\n", name)
		}
	}
	ready, err := c.nodeTable(ctx, &b)
	if err != nil {
		fmt.Fprintf(&b, "\nnodes: %v\n", err)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return false, fmt.Errorf("print status: %w", err)
	}
	if err := w.Flush(); err != nil {
		return false, fmt.Errorf("print status: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\nexport KUBECONFIG=%s PATH=%s:$PATH\n", c.Kubeconfig(), c.layout.tools()); err != nil {
		return false, fmt.Errorf("print status: %w", err)
	}
	return healthy && ready && err == nil, nil
}

func (c *Cluster) nodeTable(ctx context.Context, b *strings.Builder) (ready bool, err error) {
	client, err := c.client()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("ask kube-apiserver: %w", err)
	}
	ready = len(list.Items) == len(listNodes())
	b.WriteString("\nNODE\tZONE\tADDRESS\tSTATE\n")
	for _, n := range list.Items {
		ok, why := nodeReady(&n, time.Time{})
		state := "Ready"
		if !ok {
			ready, state = false, "NotReady ("+why+")"
		}
		address := ""
		if len(n.Status.Addresses) > 0 {
			address = n.Status.Addresses[0].Address
		}
		fmt.Fprintf(b, "%s\t%s\t%s\t%s\n", n.Name, n.Labels["topology.kubernetes.io/zone"], address, state)
	}
	return ready, nil
}

// Logs copies the log of a daemon, as [names] spells it, to out.
func (c *Cluster) Logs(name string, out io.Writer) (err error) {
	if !slices.Contains(listDaemons(), name) {
		return fmt.Errorf("show log of %q: unknown, there are %s", name, strings.Join(listDaemons(), ", "))
	}
	f, err := os.Open(c.layout.logFile(name))
	if err != nil {
		return fmt.Errorf("show log of %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if _, err := io.Copy(out, f); err != nil {
		return fmt.Errorf("show log of %s: %w", name, err)
	}
	return nil
}
