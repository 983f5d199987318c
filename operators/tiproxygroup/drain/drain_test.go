package drain

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/hook"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// proxy is a TiProxy that shows what clients are connected, one text for each look; the
// last one stays.
func proxy(t *testing.T, shows ...string) (url string, looks *atomic.Int32) {
	looks = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := shows[min(int(looks.Add(1)), len(shows))-1]
		if text == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, err := fmt.Fprint(w, text)
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/metrics", looks
}

func clients(n int) string { return fmt.Sprintf("# TYPE x gauge\ntiproxy_server_connections %d\n", n) }

func TestPX02AProxyIsStoppedWhenItsLastClientHasGone(t *testing.T) {
	for name, c := range map[string]struct {
		shows []string
		looks int32
		says  string
	}{
		"no client is connected":          {[]string{clients(0)}, 1, ""},
		"clients close their connections": {[]string{clients(2), clients(1), clients(0)}, 3, ""},
		"a look fails":                    {[]string{clients(2), "", clients(0)}, 3, ""},
		"every look fails":                {[]string{""}, maxFailures, "502"},
		"the metric is not there":         {[]string{"tiproxy_server_connections_total 9\n"}, 1, "does not show"},
		"it has labels":                   {[]string{"tiproxy_server_connections{a=\"} 7\"} 1\ntiproxy_server_connections{a=\"y\"} 2\n", "tiproxy_server_connections{a=\"x\"} 0\n"}, 2, ""},
		"another metric begins like it":   {[]string{"tiproxy_server_connections_sum 5\n" + clients(0)}, 1, ""},
		"the value is none":               {[]string{"tiproxy_server_connections many\n"}, maxFailures, "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			url, looks := proxy(t, c.shows...)
			err := Job{Metrics: url, Within: time.Minute, Poll: time.Millisecond}.Stop(t.Context())
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
			assert.Equal(t, c.looks, looks.Load())
		})
	}
}

func TestPX02ClientsAreWaitedForWithinABound(t *testing.T) {
	url, _ := proxy(t, clients(3))
	begun := time.Now()
	err := Job{Metrics: url, Within: 50 * time.Millisecond, Poll: time.Millisecond}.Stop(t.Context())
	require.ErrorContains(t, err, "within 50ms")
	assert.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
}

// The time ends with a look, and not with a clock: on a busy machine one look may take all of a short time.
func TestPX02ClientsThatAreLeftAreCounted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if looks++; looks == 2 {
			cancel()
		}
		_, _ = fmt.Fprint(w, clients(3)) // the last one is not read
	}))
	t.Cleanup(server.Close)
	err := Job{Metrics: server.URL, Within: time.Minute, Poll: time.Millisecond}.Stop(ctx)
	require.EqualError(t, err, "clients have not closed 3 connections within 1m0s")
}

// Zero would say that every client had gone.
func TestPX02ClientsThatWereNeverCountedHaveNoNumber(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, end func()){
		"every look fails":      func(w http.ResponseWriter, end func()) { w.WriteHeader(http.StatusBadGateway); end() },
		"the first is cut off":  func(_ http.ResponseWriter, end func()) { end() },
		"the second is cut off": nil,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looks := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if looks++; answer != nil {
					answer(w, cancel)
					return
				}
				if looks == 2 {
					cancel()
				}
				w.WriteHeader(http.StatusBadGateway)
			}))
			t.Cleanup(server.Close)
			err := Job{Metrics: server.URL, Within: time.Minute, Poll: time.Millisecond}.Stop(ctx)
			require.ErrorContains(t, err, "how many clients are left is not known, no look succeeded within 1m0s: ")
			if answer == nil {
				require.ErrorContains(t, err, "502", "why it failed, and not that the time is over")
			}
		})
	}
}

func TestPX02WithoutTimeForClientsNoneIsWaitedFor(t *testing.T) {
	url, looks := proxy(t, clients(3))
	require.NoError(t, Job{Metrics: url}.Stop(t.Context()))
	assert.Zero(t, looks.Load())
}

func TestPX02TheDelayNeverEndsEarly(t *testing.T) {
	url, looks := proxy(t, clients(0))
	begun := time.Now()
	require.NoError(t, Job{Metrics: url, Delay: 30 * time.Millisecond, Within: time.Minute}.Stop(t.Context()))
	assert.GreaterOrEqual(t, time.Since(begun), 30*time.Millisecond)
	assert.EqualValues(t, 1, looks.Load())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Job{Metrics: url, Delay: time.Hour}.Stop(ctx), context.Canceled)
}

func TestTheCommandLine(t *testing.T) {
	for line, c := range map[string]struct {
		args []string
		want Command
		says string
	}{
		"install":          {[]string{"install", "/d/drain"}, Command{Line: hook.Line{Verb: "install", Into: "/d/drain"}}, ""},
		"stop":             {[]string{"stop", "--metrics=u", "--delay=10s", "--within=60s"}, Command{Line: hook.Line{Verb: "stop"}, Job: Job{Metrics: "u", Delay: 10 * time.Second, Within: time.Minute}}, ""},
		"nothing":          {nil, Command{}, "want install or stop"},
		"no place":         {[]string{"install"}, Command{}, "the place to install to"},
		"another verb":     {[]string{"start"}, Command{}, `"start" is none of`},
		"no metrics":       {[]string{"stop"}, Command{}, "stop wants"},
		"an unknown flag":  {[]string{"stop", "--x"}, Command{}, "read flags"},
		"an argument more": {[]string{"stop", "--metrics=u", "y"}, Command{}, `unexpected argument "y"`},
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

func TestPX04ClientsAreCountedOverTLS(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{Names: []string{"p-0.p-peer.shop.svc"}})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, clients(0)) }))
	server.TLS, err = pki.ServerConfig(data)
	require.NoError(t, err)
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	stop := func(secured hook.TLS) error {
		return Job{Metrics: server.URL, TLS: secured, Within: time.Minute, Poll: time.Millisecond}.Stop(t.Context())
	}
	require.ErrorContains(t, stop(hook.TLS{Dir: dir, ServerName: "p-0.p-peer.shop.svc"}), "read the CA")
	require.NoError(t, pki.Write(dir, data))
	require.NoError(t, stop(hook.TLS{Dir: dir, ServerName: "p-0.p-peer.shop.svc"}))
	require.ErrorContains(t, stop(hook.TLS{Dir: dir, ServerName: "p-1.p-peer.shop.svc"}), "p-1.p-peer.shop.svc", "it is another one")
	require.Error(t, stop(hook.TLS{}), "who shows no certificate gets nothing")
}
