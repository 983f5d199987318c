package resign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

const (
	// poll is how often the member is asked who leads, by default.
	poll = 100 * time.Millisecond
	// again is after how many looks another member is asked to lead, five seconds by
	// default: PD answers before another one leads, which takes up to three.
	again = 50
	// healthTimeout is how long it may take to ask which members are healthy: the leader waits
	// three seconds for each that does not answer, and of seven three may be dead.
	healthTimeout = 10 * time.Second
	// readyTimeout is how long a member may take to say whether it has loaded the regions, which it
	// knows. One that says nothing counts as one that has.
	readyTimeout = time.Second
)

// Job is what is done for one member.
type Job struct {
	// PD is the base URL of the member, like http://127.0.0.1:2379.
	PD string
	// TLS is how PD is connected to over TLS.
	TLS hook.TLS
	// Name of the member.
	Name string
	// Poll is how often it is asked who leads; 100 ms if zero.
	Poll time.Duration
	// Say reports progress to the user; nil reports none.
	Say hook.Say
}

// Stop has another member lead, and returns when PD says so. It returns at once for a
// member that does not lead, or that knows of no leader, and when no other member is
// healthy. An error says why the process is stopped while it leads.
func (j Job) Stop(ctx context.Context) error {
	pd := server{hook.NewPD(j.PD, j.TLS)}
	var tried []string
	for look := 0; ; look++ {
		leader, err := pd.leader(ctx)
		switch {
		case err != nil && look == 0:
			// The leader answers. Without one there is nothing to hand over.
			j.Say.Logf("stopped without asking for PD's leader: %v", err)
			return nil
		case err == nil && leader != j.Name:
			if look > 0 {
				j.Say.Logf("%s leads now", leader)
			}
			return nil
		case err == nil && look%again == 0:
			next, err := j.handOver(ctx, pd, tried)
			switch {
			case err != nil:
				j.Say.Logf("%v", err) // it is tried again, or the time is over
			case next == "":
				j.Say.Logf("member %s is stopped while it leads: no other one is healthy", j.Name)
				return nil
			}
			tried = append(tried, next)
		}
		// Without an answer PD is between two leaders.
		if !hook.Pause(ctx, cmp.Or(j.Poll, poll)) {
			return fmt.Errorf("member %s is stopped while it leads: no other one did in time", j.Name)
		}
	}
}

// handOver asks a member to lead, and returns which. It is none when no other member is
// healthy. One that has loaded the regions comes first, and those that have been asked last.
func (j Job) handOver(ctx context.Context, pd server, tried []string) (string, error) {
	healthy, err := pd.healthyMembers(ctx)
	if err != nil {
		return "", err
	}
	healthy = slices.DeleteFunc(healthy, func(m member) bool { return m.Name == j.Name || m.Name == "" })
	if len(healthy) == 0 {
		return "", nil
	}
	slices.SortStableFunc(healthy, func(a, b member) int {
		return cmp.Compare(slices.Index(tried, a.Name), slices.Index(tried, b.Name))
	})
	next := healthy[0]
	if at := slices.IndexFunc(healthy, func(m member) bool { return !slices.Contains(tried, m.Name) && !j.isLoading(ctx, m) }); at >= 0 {
		next = healthy[at]
	}
	j.Say.Logf("member %s hands over to %s before it is stopped", j.Name, next.Name)
	return next.Name, pd.transfer(ctx, next.Name)
}

// isLoading reports whether a member says that it has not loaded the regions yet: as the leader it could
// tell no client where one is. Versions before v8.5.2 do not say.
func (j Job) isLoading(ctx context.Context, m member) bool {
	if len(m.URLs) == 0 {
		return false
	}
	// Its certificate has its own name, and not that of the member that is asked at localhost.
	asked := hook.NewPD(m.URLs[0], hook.TLS{Dir: j.TLS.Dir}).BoundCalls(readyTimeout)
	var refused *hook.Refusal
	return errors.As(asked.Call(ctx, http.MethodGet, "/pd/api/v2/ready", nil, nil), &refused) && refused.Status >= http.StatusInternalServerError
}

// member is a member that the leader calls healthy.
type member struct {
	Name string   `json:"name"`
	URLs []string `json:"client_urls"`
}

// server is a member of PD.
type server struct{ hook.PD }

// leader returns the name of the member that leads; an error if there is none.
func (s server) leader(ctx context.Context) (string, error) {
	var answer struct {
		Name string `json:"name"`
	}
	if err := s.Call(ctx, http.MethodGet, "/pd/api/v1/leader", nil, &answer); err != nil {
		return "", fmt.Errorf("ask for PD's leader: %w", err)
	}
	if answer.Name == "" {
		return "", errors.New("ask for PD's leader: there is none")
	}
	return answer.Name, nil
}

// healthyMembers returns the members that the leader calls healthy.
func (s server) healthyMembers(ctx context.Context) ([]member, error) {
	var answer []struct {
		member
		Healthy bool `json:"health"`
	}
	if err := s.BoundCalls(healthTimeout).Call(ctx, http.MethodGet, "/pd/api/v1/health", nil, &answer); err != nil {
		return nil, fmt.Errorf("ask which members are healthy: %w", err)
	}
	var out []member
	for _, m := range answer {
		if m.Healthy {
			out = append(out, m.member)
		}
	}
	return out, nil
}

// transfer asks a member to lead.
func (s server) transfer(ctx context.Context, to string) error {
	if err := s.Call(ctx, http.MethodPost, "/pd/api/v1/leader/transfer/"+url.PathEscape(to), nil, nil); err != nil {
		return fmt.Errorf("hand PD's leader over to %s: %w", to, err)
	}
	return nil
}
