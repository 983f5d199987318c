package conformance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recording is one call to a real PD and its whole answer.
type recording struct {
	Name    string `json:"-"`
	Request struct {
		Method string  `json:"method"`
		URL    string  `json:"url"`
		Body   *string `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Raw     *string           `json:"body_raw"`
		Body    json.RawMessage   `json:"body"`
	} `json:"response"`
	At string `json:"recorded_at"`
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/recordings/*.json")
	require.NoError(t, err)
	out := map[string]recording{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		var r recording
		require.NoError(t, json.Unmarshal(data, &r), f)
		r.Name = strings.TrimSuffix(filepath.Base(f), ".json")
		out[r.Name] = r
	}
	return out
}

// byKind are values that two runs can't share: only their kind is compared
// (number, text, list, …), and where the table says so, whether they are zero.
var byKind = map[string]struct{ zero bool }{
	"member_id": {true}, "cluster_id": {true}, "id@cluster": {true},
	"start_timestamp": {true}, "last_heartbeat": {true}, "last_heartbeat_ts": {}, "start_ts": {}, "uptime": {},
	"raft_bootstrap_time": {}, "created_at": {true}, "state_changed_at": {true},
	"available": {}, "used_size": {},
	"leader_count": {true}, "leader_score": {true}, "leader_size": {true},
	"region_count": {true}, "region_score": {}, "region_size": {true},
	"current_speed": {true}, "progress": {true}, "left_seconds": {true},
	"down_seconds": {true}, "count@regions": {true}, "storage_size": {true}, "storage_keys": {true},
	"store_leader_count": {}, "store_peer_count": {}, "store_leader_size": {}, "store_leader_keys": {},
	"store_peer_size": {}, "store_peer_keys": {},
	"data-dir": {}, "initial-cluster": {}, "filename": {}, "job": {},
	"peer_urls": {}, "peer-urls": {}, "advertise-peer-urls": {},
}

// mayMiss are keys that come and go with what happens to move at the moment.
var mayMiss = []string{"learner_count", "pending_peer_count", "uptime"}

var (
	clientURL = regexp.MustCompile(`http://127\.0\.0\.1:2790([123])`)
	bigNumber = regexp.MustCompile(`\d{15,}`)
)

// diff lists in words what differs between a recorded value and one that was got.
type diff struct {
	found []string
	run   *scenarioRun
}

func (d *diff) add(path, format string, args ...any) {
	d.found = append(d.found, path+": "+fmt.Sprintf(format, args...))
}

// text makes texts comparable: addresses of members become their names.
func (d *diff) text(s string) string {
	s = clientURL.ReplaceAllString(s, "client:pd-$1")
	for _, name := range memberNames {
		s = strings.ReplaceAll(s, d.run.b.URL(name), "client:"+name)
	}
	return bigNumber.ReplaceAllString(s, "ID")
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case json.Number:
		return "number"
	case string:
		return "text"
	case bool:
		return "truth"
	case []any:
		return "list"
	default:
		return "object"
	}
}

func isZero(v any) bool {
	n, ok := v.(json.Number)
	return ok && (n == "0" || n == "0.0")
}

func (d *diff) value(path, key string, want, got any) {
	if kind(want) != kind(got) {
		d.add(path, "want a %s (%v), got a %s (%v)", kind(want), want, kind(got), got)
		return
	}
	if rule, ok := byKind[key]; ok {
		if rule.zero && isZero(want) != isZero(got) {
			d.add(path, "want %v, got %v: one of them is zero", want, got)
		}
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		d.object(path, w, g)
	case []any:
		g, _ := got.([]any)
		d.list(path, key, w, g)
	case json.Number:
		g, _ := got.(json.Number)
		x, errX := w.Float64()
		y, errY := g.Float64()
		if errX != nil || errY != nil || x != y {
			d.add(path, "want %v, got %v", w, g)
		}
	case string:
		g, _ := got.(string)
		if d.text(w) != d.text(g) {
			d.add(path, "want %q, got %q", d.text(w), d.text(g))
		}
	default:
		if want != got {
			d.add(path, "want %v, got %v", want, got)
		}
	}
}

func (d *diff) object(path string, want, got map[string]any) {
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	_, regions := want["regions"]
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		w, inWant := want[k]
		g, inGot := got[k]
		if inWant != inGot {
			if !slices.Contains(mayMiss, k) {
				d.add(path+"."+k, "recorded: %v, got: %v", inWant, inGot)
			}
			continue
		}
		rule := k
		switch {
		case k == "count" && regions, k == "count" && path == "stats":
			rule = "count@regions"
		case k == "id" && want["max_peer_count"] != nil:
			rule = "id@cluster"
		}
		d.value(path+"."+k, rule, w, g)
	}
}

// list compares lists that PD orders by chance by what names their elements.
func (d *diff) list(path, key string, want, got []any) {
	switch key {
	case "regions":
		d.shapes(path, want, got)
		return
	case "down_peers", "peers":
		return
	}
	want = d.withoutUnknown(want)
	if len(want) != len(got) {
		d.add(path, "want %d elements, got %d", len(want), len(got))
		return
	}
	want, got = sorted(want), sorted(got)
	for i := range want {
		d.value(fmt.Sprintf("%s[%d]", path, i), "", want[i], got[i])
	}
}

func sorted(list []any) []any {
	out := slices.Clone(list)
	sort.SliceStable(out, func(i, j int) bool { return nameOf(out[i]) < nameOf(out[j]) })
	return out
}

func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if s, ok := m["store"].(map[string]any); ok {
		return fmt.Sprint(s["id"])
	}
	return fmt.Sprint(m["name"], m["key"], m["value"], m["group_id"], m["id"], m["type"])
}

// shapes compares what keys the elements of two lists have, and that both or
// neither are empty.
func (d *diff) shapes(path string, want, got []any) {
	if (len(want) == 0) != (len(got) == 0) {
		d.add(path, "recorded %d, got %d: one of them is empty", len(want), len(got))
	}
	if len(want) == 0 || len(got) == 0 {
		return
	}
	w, g := keysOf(want), keysOf(got)
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if _, ok := g[k]; !ok {
			d.add(path, "no element has the key %s", k)
		} else if g[k] != w[k] {
			d.add(path, "%s is a %s, recorded a %s", k, g[k], w[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(g)) {
		if _, ok := w[k]; !ok {
			d.add(path, "key %s was not recorded", k)
		}
	}
}

func keysOf(list []any) map[string]string {
	out := map[string]string{}
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			for k, x := range m {
				out[k] = kind(x)
			}
		}
	}
	return out
}

// parse reads a body; what is no JSON is text.
func parse(body []byte) any {
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(body)
	}
	return v
}

// recordedBody is the body as it came: the raw text where the recording has one.
func (r recording) recordedBody() []byte {
	if r.Response.Raw != nil {
		return []byte(*r.Response.Raw)
	}
	return r.Response.Body
}

// headers are those that a client may depend on.
var headers = []string{"Content-Type", "Tidb-Error-Code", "Location", "X-Content-Type-Options", "Access-Control-Allow-Origin"}

// compare says in words what differs; nothing means that the answers agree.
func compare(p *scenarioRun, r recording, status int, header map[string]string, body []byte) []string {
	d := &diff{run: p}
	if status != r.Response.Status {
		d.add("status", "want %d, got %d", r.Response.Status, status)
	}
	for _, h := range headers {
		if header[h] != r.Response.Headers[h] {
			d.add("header "+h, "want %q, got %q", r.Response.Headers[h], header[h])
		}
	}
	root := "body"
	if strings.Contains(r.Request.URL, "/stats/region") {
		root = "stats"
	}
	d.value(root, "", parse(r.recordedBody()), parse(body))
	return d.found
}
