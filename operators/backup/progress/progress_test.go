package progress

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// answer is what the meter answers.
func answer(m *Meter) (int, string) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestTheLogsOfTheToolsTellHowFarTheyAre(t *testing.T) {
	for name, line := range map[string]string{
		"Dumpling":       `[2026/01/02 03:04:05.000 +00:00] [INFO] [status.go:37] [progress] [tables="0/1 (0.0%)"] ["finished rows"=25] ["estimate total rows"=100] ["finished size"=1MB] ["average speed(MiB/s)"=0.1] ["recent speed bps"=1] ["chunks progress"="25.00 %"]`,
		"Dumpling below": `[2026/01/02 03:04:05.000 +00:00] [INFO] [status.go:37] [progress] [tables="0/1 (0.0%)"] ["chunks progress"=" 25.00 %"]`,
		"Lightning":      `[2026/01/02 03:04:05.000 +00:00] [INFO] [import.go:1130] [progress] [total=25.0%] [tables="0/3 (0.0%)"] [chunks="0/3 (0.0%)"] [remaining=5m]`,
		"BR":             `[2026/01/02 03:04:05.000 +00:00] [INFO] [progress.go:176] [progress] [step="Full Backup"] [progress=25.00%] [count="1 / 4"] [speed="? p/s"] [elapsed=1m] [remaining=3m]`,
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			m := NewMeter(func() time.Time { return now })
			code, _ := answer(m)
			assert.Equal(t, http.StatusNotFound, code)
			now = now.Add(time.Minute)
			_, err := m.Write([]byte("[INFO] [total=99%]\n" + line[:70]))
			require.NoError(t, err)
			code, _ = answer(m)
			assert.Equal(t, http.StatusNotFound, code, "the line has no end yet")
			_, err = m.Write([]byte(line[70:] + "\n"))
			require.NoError(t, err)
			_, text := answer(m)
			assert.Equal(t, `{"percent":25,"completion":"2026-01-02T03:08:05Z"}`, text)

			now = now.Add(Every - time.Second)
			next := strings.ReplaceAll(line, "25.0", "50.0") + "\n"
			_, _ = m.Write([]byte(next))
			_, text = answer(m)
			assert.Contains(t, text, `"percent":25`, "too soon after the last")
			now = now.Add(time.Second)
			_, _ = m.Write([]byte(next))
			_, text = answer(m)
			assert.Contains(t, text, `"percent":50`)
		})
	}
}

func TestP12TheOutputOfAPodIsNotTrusted(t *testing.T) {
	for _, text := range []string{"", "{", `{"percent":101}`, `{"percent":-1}`, `{"percent":"a"}`, `[]`} {
		_, is := parseReport([]byte(text))
		assert.False(t, is, text)
	}
	body := ""
	host, unused := loopback.Host(t), loopback.Host(t)
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(Port)))
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	c := NewClient()
	body = `{"percent":12.6}`
	report, err := c.Ask(t.Context(), host)
	require.NoError(t, err)
	assert.Equal(t, "13%", report.Text())
	body = strings.Repeat(" ", maxReport) + `{"percent":12.6}`
	report, err = c.Ask(t.Context(), host)
	assert.True(t, err != nil || report == nil)
	_, err = c.Ask(t.Context(), unused)
	require.ErrorContains(t, err, "ask "+unused+" for progress")
}
