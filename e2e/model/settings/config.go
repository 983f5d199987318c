package settings

import (
	_ "embed" // the lists of items
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tikv are the items that TiKV v8.5 takes while it runs, by TiDB's documents
// ("Modify Configuration Dynamically"), with the kind of each.
//
//go:embed tikv.txt
var tikv string

// Config is the configuration of one process.
type Config struct {
	mu       sync.Mutex
	document map[string]any
	kinds    map[string]string // of the items that are taken online
	hidden   map[string]any    // taken, and not shown
}

// NewTiKV returns the configuration of a TiKV that starts with a decoded file. The
// error is what the process ends with.
func NewTiKV(file map[string]any) (*Config, error) {
	kinds := map[string]string{}
	for line := range strings.Lines(tikv) {
		key, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kinds[key] = kind
	}
	return newConfig(file, kinds)
}

// newConfig reads a file over the defaults.
func newConfig(file map[string]any, kinds map[string]string) (*Config, error) {
	c := &Config{document: map[string]any{}, kinds: kinds, hidden: map[string]any{}}
	if file == nil {
		file = map[string]any{}
	}
	raw, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if err := json.Unmarshal(raw, &c.document); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		text := defaultValue(kinds[key])
		if value, has := c.lookup(key); has {
			text = fmt.Sprint(value)
			if n, number := value.(float64); number {
				text = strconv.FormatFloat(n, 'f', -1, 64)
			}
		}
		value, err := parse(kinds[key], text)
		if err != nil {
			return nil, fmt.Errorf("invalid configuration: %s: %w", key, err)
		}
		c.set(key, value)
	}
	return c, nil
}

// Change takes items, all or none.
func (c *Config) Change(items map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		kind, known := c.kinds[key]
		if !known {
			return fmt.Errorf("config %s can not be changed", key)
		}
		value, err := parse(kind, items[key])
		if err != nil {
			return fmt.Errorf("config %s: %w", key, err)
		}
		values[key] = value
	}
	for key, value := range values {
		c.set(key, value)
	}
	return nil
}

// Value returns the value of an item that the process runs with as text, shown or
// not, and whether there is one.
func (c *Config) Value(key string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value, has := c.hidden[key]; has {
		return fmt.Sprint(value), true
	}
	value, has := c.lookup(key)
	return fmt.Sprint(value), has
}

// TiKV answers on TiKV's /config.
func (c *Config) TiKV(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		c.show(w)
		return
	}
	items, err := decodeItems(r.Body)
	if err != nil {
		rejectRequest(w, http.StatusInternalServerError, fmt.Sprintf("failed to decode, error: %q", err))
		return
	}
	if err := c.Change(items); err != nil {
		rejectRequest(w, http.StatusInternalServerError, fmt.Sprintf("failed to update, error: %q", err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (c *Config) show(w http.ResponseWriter) {
	c.mu.Lock()
	raw, err := json.Marshal(c.document)
	c.mu.Unlock()
	if err != nil {
		rejectRequest(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // who asked may have gone
}

func rejectRequest(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // who asked may have gone
}

// decodeItems decodes a request: text, numbers and booleans count as text.
func decodeItems(body io.Reader) (map[string]string, error) {
	var raw map[string]any
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&raw); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for key, value := range raw {
		switch value.(type) {
		case map[string]any, []any:
			return nil, errors.New("json type is not supported")
		}
		out[key] = fmt.Sprint(value)
	}
	return out, nil
}

func (c *Config) lookup(key string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(c.document, strings.Split(key, ".")...)
	return value, err == nil && found
}

func (c *Config) set(key string, value any) {
	table := c.document
	parts := strings.Split(key, ".")
	for _, part := range parts[:len(parts)-1] {
		below, ok := table[part].(map[string]any)
		if !ok {
			below = map[string]any{}
			table[part] = below
		}
		table = below
	}
	table[parts[len(parts)-1]] = value
}

// defaultValue is the value of an item that the file does not name.
func defaultValue(kind string) string {
	return map[string]string{"text": "info", "number": "1", "bool": "false", "size": "1MiB", "duration": "1s"}[kind]
}

// parse reads a value, and gives it as the server shows it: sizes in the largest
// unit that is whole.
func parse(kind, text string) (any, error) {
	switch kind {
	case "number":
		return strconv.ParseFloat(text, 64)
	case "bool":
		return strconv.ParseBool(text)
	case "size":
		return parseSize(text)
	case "duration":
		if _, err := time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("invalid duration %q", text)
		}
	case "text":
		if !slices.Contains([]string{"debug", "info", "warn", "error", "fatal"}, strings.ToLower(text)) {
			return nil, fmt.Errorf("invalid level %q", text)
		}
	}
	return text, nil
}

func parseSize(text string) (any, error) {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	number := strings.TrimRight(text, "KMGTPBib ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid size %q", text)
	}
	unit := strings.TrimSpace(strings.TrimPrefix(text, number))
	power := max(strings.Index("BKMGT", (unit + "B")[:1]), 0)
	for ; power < len(units)-1 && n > 0 && n%1024 == 0; power++ {
		n /= 1024
	}
	return fmt.Sprint(n) + units[power], nil
}
