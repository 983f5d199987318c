package pdclient

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// codeNone is the code of a call that got no answer.
const codeNone = "none"

// Metrics of the calls to PD.
type Metrics struct {
	calls *prometheus.HistogramVec
}

// NewMetrics registers the metrics; use controller-runtime's metrics.Registry.
// It is called once per process: registering twice is an error.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tidb_groups_pd_call_seconds",
		Help:    "How long PD took to answer a call, in seconds, by call and HTTP status; none if it did not answer.",
		Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2},
	}, []string{"call", "code"})}
	if err := registry.Register(m.calls); err != nil {
		return nil, fmt.Errorf("register the metrics of calls to PD: %w", err)
	}
	return m, nil
}

// observe is a no-op without metrics.
func (m *Metrics) observe(call, code string, took time.Duration) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues(call, code).Observe(took.Seconds())
}
