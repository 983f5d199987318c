package operator

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidb-groups/tidb-groups/shared/metrics"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Outcomes counts how the steps of reconciling end. The zero value counts nothing.
type Outcomes struct {
	kind    string
	counter *prometheus.CounterVec
}

// newOutcomes registers the counter, or finds it registered by another operator
// of the same process.
func newOutcomes(registry prometheus.Registerer, kind string) (Outcomes, error) {
	row := metrics.ReconcileOutcomes()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: row.Name, Help: row.Help}, row.Labels)
	if err := registry.Register(counter); err != nil {
		already := prometheus.AlreadyRegisteredError{}
		if !errors.As(err, &already) {
			return Outcomes{}, fmt.Errorf("register metrics of %s: %w", kind, err)
		}
		existing, ok := already.ExistingCollector.(*prometheus.CounterVec)
		if !ok {
			return Outcomes{}, fmt.Errorf("register metrics of %s: %w", kind, err)
		}
		counter = existing
	}
	return Outcomes{kind: kind, counter: counter}, nil
}

// WithKind counts for another kind of the same operator.
func (o Outcomes) WithKind(kind string) Outcomes {
	o.kind = kind
	return o
}

// Count counts the end of a step and returns it.
func (o Outcomes) Count(name string, outcome step.Outcome) step.Outcome {
	if o.counter != nil {
		o.counter.WithLabelValues(o.kind, name, string(outcome.Kind)).Inc()
	}
	return outcome
}
