package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// KindMemory is what the API server keeps in memory for the suite's kinds. It is what is left
// after its garbage was collected: by Go's default the process takes up to twice as much.
type KindMemory struct {
	// Without and With the kinds, in bytes.
	Without int64 `json:"without"`
	With    int64 `json:"with"`
}

// String tells it on a line.
func (k KindMemory) String() string {
	return fmt.Sprintf("kube-apiserver keeps %.1f MiB without our kinds and %.1f MiB with them: %.1f MiB more", toMiB(k.Without), toMiB(k.With), toMiB(k.With-k.Without))
}

// MeasureKindMemory compares an API server that has none of the suite's kinds with one that
// has all, after a client has read the schemas of all kinds that there are, as kubectl does.
func MeasureKindMemory(ctx context.Context, options controlplane.Options) (out KindMemory, err error) {
	without := options
	without.CRDPaths = nil
	if out.Without, err = keptBy(ctx, without); err != nil {
		return out, err
	}
	out.With, err = keptBy(ctx, options)
	return out, err
}

// keptBy is how many bytes the API server of a new control plane keeps.
func keptBy(ctx context.Context, options controlplane.Options) (bytes int64, err error) {
	options.ControllerManager, options.Controllers = false, nil
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := awaitKinds(ctx, plane.Config); err != nil {
		return 0, err
	}
	schemas := []string{"/openapi/v2"}
	if len(options.CRDPaths) > 0 {
		schemas = append(schemas, "/openapi/v3/apis/"+v1alpha1.GroupVersion().String())
	}
	return liveHeap(ctx, plane.Config, schemas)
}

// liveHeap reads schemas of an API server, and returns what is left on its heap once its garbage
// was collected.
func liveHeap(ctx context.Context, config *rest.Config, schemas []string) (int64, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("look at the API server: %w", err)
	}
	for _, path := range schemas {
		if _, err := c.RESTClient().Get().AbsPath(path).DoRaw(ctx); err != nil {
			return 0, fmt.Errorf("read %s: %w", path, err)
		}
	}
	if _, err := c.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return 0, fmt.Errorf("have the API server collect its garbage: %w", err)
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return heapIn(string(text))
}

// heapIn is the size of the heap in metrics of a Go program, in bytes.
func heapIn(metrics string) (int64, error) {
	const name = "go_memstats_heap_alloc_bytes"
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		return 0, fmt.Errorf("parse metrics: %w", err)
	}
	for _, metric := range families[name].GetMetric() {
		return int64(metric.GetGauge().GetValue()), nil
	}
	return 0, fmt.Errorf("metrics have no %s", name)
}
