package localcluster

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidb-groups/tidb-groups/e2e/images"
)

// loadLimit bounds how many imports run at once, over all nodes.
const loadLimit = 4

// Load imports image archives into every running node. An image that a node
// already has with the same digest is skipped, so that calling it again is
// cheap. Nodes that are stopped are left out; [Cluster.StartNode] does not make
// up for that, another Load does.
func (c *Cluster) Load(ctx context.Context, archives ...images.Archive) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	var targets []string
	for _, n := range listNodes() {
		if _, ok := c.processes.recorded(n.Name + "/containerd"); ok {
			targets = append(targets, n.Name)
		}
	}
	if len(targets) == 0 {
		return fmt.Errorf("load images: no node of the cluster in %s is running; start it with localcluster up", c.layout.root)
	}
	imported, err := c.load(ctx, targets, archives)
	if err != nil {
		return err
	}
	c.say("images: %d on %d nodes, %d imports", len(archives), len(targets), imported)
	return nil
}

// load imports what is missing and returns how many imports that took.
func (c *Cluster) load(ctx context.Context, targets []string, archives []images.Archive) (int, error) {
	type job struct {
		node    string
		archive images.Archive
	}
	var jobs []job
	for _, node := range targets {
		out, err := c.ctr(ctx, node, "images", "list")
		if err != nil {
			return 0, fmt.Errorf("list images of %s: %w", node, err)
		}
		present := parseImages(out)
		for _, a := range archives {
			if a.Digest == "" || present[a.Ref] != a.Digest {
				jobs = append(jobs, job{node, a})
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loadLimit)
	for _, j := range jobs {
		group.Go(func() error {
			if _, err := c.ctr(ctx, j.node, "images", "import", "--all-platforms", j.archive.Path); err != nil {
				return fmt.Errorf("import %s into %s: %w", j.archive.Ref, j.node, err)
			}
			return nil
		})
	}
	return len(jobs), group.Wait()
}

// parseImages reads `ctr images list` into name → digest.
func parseImages(out string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			found[fields[0]] = fields[2]
		}
	}
	return found
}
