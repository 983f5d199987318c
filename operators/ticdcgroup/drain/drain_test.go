package drain

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/hook"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// captureSimulation are captures of which one is asked, the others take over as a test says.
type captureSimulation struct {
	mu       sync.Mutex
	others   int
	owner    bool
	tables   int
	answers  map[string][]int // statuses, by call, before it does what it is told
	calls    []string
	stubborn bool
	last     int    // with how many calls the time ends; 0 for never
	over     func() // ends it
}

func (p *captureSimulation) serve(t *testing.T) string {
	server := httptest.NewServer(p.handler())
	t.Cleanup(server.Close)
	return server.URL
}

func (p *captureSimulation) handler() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		call := r.Method + " " + r.URL.Path
		p.calls = append(p.calls, call)
		if len(p.calls) == p.last {
			p.over()
		}
		if left := p.answers[call]; len(left) > 0 {
			p.answers[call] = left[1:]
			w.WriteHeader(left[0])
			if left[0] == http.StatusBadRequest {
				_, _ = fmt.Fprint(w, `{"error_msg": "[CDC:ErrSchedulerRequestFailed]scheduler request failed, drain already in progress on capture x", "error_code": "CDC:ErrSchedulerRequestFailed"}`)
			}
			return
		}
		switch call {
		case "GET /api/v1/status":
			_, _ = fmt.Fprintf(w, `{"id": "me", "is_owner": %t}`, p.owner)
		case "GET /api/v1/captures":
			list := slices.Repeat([]byte(`{"id": "x"},`), p.others)
			_, _ = fmt.Fprintf(w, `[%s{"id": "me"}]`, list)
		case "POST /api/v1/owner/resign":
			p.owner = p.stubborn
			w.WriteHeader(http.StatusAccepted)
		case "PUT /api/v1/captures/drain":
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprintf(w, `{"current_table_count": %d}`, p.tables)
			if !p.stubborn && p.tables > 0 {
				p.tables--
			}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

func (p *captureSimulation) count(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.calls {
		if c == call {
			n++
		}
	}
	return n
}

const (
	resign = "POST /api/v1/owner/resign"
	drain  = "PUT /api/v1/captures/drain"
	status = "GET /api/v1/status"
)

func TestCDC01ACaptureHandsOverBeforeItStops(t *testing.T) {
	for name, c := range map[string]struct {
		captures        *captureSimulation
		resigns, drains int
		says            string
	}{
		"one that owns and copies":             {&captureSimulation{others: 1, owner: true, tables: 2}, 1, 3, ""},
		"one that copies":                      {&captureSimulation{others: 2, tables: 1}, 0, 2, ""},
		"one that does nothing":                {&captureSimulation{others: 2}, 0, 1, ""},
		"one that is alone":                    {&captureSimulation{owner: true, tables: 5}, 0, 0, ""},
		"one beside another that is drained":   {&captureSimulation{others: 2, answers: map[string][]int{drain: {503, 503}}}, 0, 3, ""},
		"one beside another, new architecture": {&captureSimulation{others: 2, tables: 1, answers: map[string][]int{drain: slices.Repeat([]int{400}, 2*maxFailures)}}, 0, 2*maxFailures + 2, ""},
		"one without an owner for a while":     {&captureSimulation{others: 2, answers: map[string][]int{status: {503}}}, 0, 1, ""},
		"one that fails for a while":           {&captureSimulation{others: 1, tables: 1, answers: map[string][]int{drain: {500, 500}}}, 0, 4, ""},
		"one of a version without the call":    {&captureSimulation{others: 1, tables: 1, answers: map[string][]int{drain: {404}}}, 0, 1, "cannot be drained"},
		"one that always fails":                {&captureSimulation{others: 1, answers: map[string][]int{status: slices.Repeat([]int{500}, 99)}}, 0, 0, "500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Job{API: c.captures.serve(t), Within: time.Minute, Poll: time.Millisecond}.Stop(t.Context())
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			assert.Equal(t, c.resigns, c.captures.count(resign), "resigns")
			assert.Equal(t, c.drains, c.captures.count(drain), "drains")
		})
	}
}

func TestSEC01ACaptureIsDrainedOverTLS(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{Names: []string{"c-0.c-peer.shop.svc"}})
	require.NoError(t, err)
	p := &captureSimulation{others: 1, owner: true, tables: 1}
	server := httptest.NewUnstartedServer(p.handler())
	server.TLS, err = pki.ServerConfig(data)
	require.NoError(t, err)
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	require.NoError(t, pki.Write(dir, data))
	job := Job{API: server.URL, TLS: hook.TLS{Dir: dir, ServerName: "c-1.c-peer.shop.svc"}, Within: time.Minute, Poll: time.Millisecond}
	require.ErrorContains(t, job.Stop(t.Context()), "c-1.c-peer.shop.svc", "it is another one")
	job.TLS.ServerName = "c-0.c-peer.shop.svc"
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, 1, p.count(resign))
}

func TestCDC01WorkLeftWhenADrainTimesOutIsReported(t *testing.T) {
	for want, p := range map[string]*captureSimulation{
		"it is still the owner":    {others: 1, owner: true, stubborn: true},
		"it still copies 4 tables": {others: 1, tables: 4, stubborn: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p.last, p.over = 7, cancel // a look takes three
		err := Job{API: p.serve(t), Within: time.Minute, Poll: time.Millisecond}.Stop(ctx)
		cancel()
		require.EqualError(t, err, "the capture stops after 1m0s: "+want)
	}
	p := &captureSimulation{others: 1, owner: true, stubborn: true}
	err := Job{API: p.serve(t), Within: 50 * time.Millisecond, Poll: time.Millisecond}.Stop(t.Context())
	require.ErrorContains(t, err, "the capture stops after 50ms: ")
}

func TestTheCommandLine(t *testing.T) {
	for line, c := range map[string]struct {
		args []string
		want Command
		says string
	}{
		"install": {[]string{"install", "/d/drain"}, Command{Line: hook.Line{Verb: "install", Into: "/d/drain"}}, ""},
		"stop":    {[]string{"stop", "--api=u", "--within=60s"}, Command{Line: hook.Line{Verb: "stop"}, Job: Job{API: "u", Within: time.Minute}}, ""},
		"over TLS": {[]string{"stop", "--api=u", "--within=60s", "--tls=/d", "--server-name=$(POD_NAME).c"}, Command{Line: hook.Line{Verb: "stop"},
			Job: Job{API: "u", Within: time.Minute, TLS: hook.TLS{Dir: "/d", ServerName: "<POD_NAME>.c"}}}, ""},
		"nothing":          {nil, Command{}, "want install or stop"},
		"no place":         {[]string{"install"}, Command{}, "the place to install to"},
		"another verb":     {[]string{"start"}, Command{}, `"start" is none of`},
		"no address":       {[]string{"stop"}, Command{}, "stop wants"},
		"an unknown flag":  {[]string{"stop", "--x"}, Command{}, "read flags"},
		"an argument more": {[]string{"stop", "--api=u", "y"}, Command{}, `unexpected argument "y"`},
	} {
		t.Run(line, func(t *testing.T) {
			got, err := Parse(c.args, func(name string) string { return "<" + name + ">" })
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}
