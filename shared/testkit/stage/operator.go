package stage

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// Operator is one that runs in the namespace of a Stage.
type Operator struct {
	// Stop ends it and waits for its end. The end of the test does so too.
	Stop func()

	mu     sync.Mutex
	writes []string
}

// Writes returns what the operator has sent that is not a read, as method and
// path.
func (o *Operator) Writes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.writes)
}

// Operate starts an operator in the stage's namespace. A Stage may have several,
// one after the other or together.
func (s *Stage) Operate(definition operator.Definition, changes ...func(*operator.Flags)) *Operator {
	s.Helper()
	o := &Operator{}
	config := rest.CopyConfig(s.server.config)
	config.Wrap(o.recordWrites)
	flags := operatorFlags(s.Namespace)
	for _, change := range changes {
		change(&flags)
	}
	// It outlives the test's context, until its clean-up.
	stop, err := s.server.start(context.WithoutCancel(s.Context()), config, definition, flags)
	require.NoError(s, err)
	o.Stop = func() {
		s.Helper()
		assert.NoError(s, stop())
	}
	s.Cleanup(o.Stop)
	return o
}

func (o *Operator) recordWrites(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			o.mu.Lock()
			o.writes = append(o.writes, r.Method+" "+r.URL.Path)
			o.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
