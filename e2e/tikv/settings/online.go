package settings

import (
	_ "embed" // the list of items
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
)

// onlineItems are the items that TiKV v8.5 takes while it runs, by TiDB's documents
// ("Modify Configuration Dynamically"), with the kind of each.
//
//go:embed online.txt
var onlineItems string

// Online is the configuration of a process that runs. What is changed is shown, and
// changes nothing else.
type Online struct {
	mu       sync.Mutex
	document map[string]any
	kinds    map[string]string // of the items that are taken
}

func newOnline(doc map[string]any) (*Online, error) {
	o := &Online{document: doc, kinds: map[string]string{}}
	for line := range strings.Lines(onlineItems) {
		key, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		text := map[string]string{"text": "info", "number": "1", "bool": "false", "size": "1MiB", "duration": "1s"}[kind]
		if value, has := findKey(doc, key); has {
			text = fmt.Sprint(value)
		}
		value, err := formatValue(kind, text)
		if err != nil {
			return nil, fmt.Errorf("invalid configuration: %s: %w", key, err)
		}
		o.kinds[key] = kind
		setKey(doc, key, value)
	}
	return o, nil
}

// change takes items, all or none.
func (o *Online) change(items map[string]string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	values := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		kind, known := o.kinds[key]
		if !known {
			return fmt.Errorf("config %s can not be changed", key)
		}
		value, err := formatValue(kind, items[key])
		if err != nil {
			return fmt.Errorf("config %s: %w", key, err)
		}
		values[key] = value
	}
	for key, value := range values {
		setKey(o.document, key, value)
	}
	return nil
}

// ServeHTTP answers on /config: GET shows, POST changes.
func (o *Online) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		o.mu.Lock()
		raw, err := json.Marshal(o.document)
		o.mu.Unlock()
		if err != nil {
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw) // who asked may have gone
		return
	}
	items, err := decodeRequest(r.Body)
	if err != nil {
		http.Error(w, fmt.Sprintf("failed to decode, error: %q", err), http.StatusInternalServerError)
		return
	}
	if err := o.change(items); err != nil {
		http.Error(w, fmt.Sprintf("failed to update, error: %q", err), http.StatusInternalServerError)
	}
}

// decodeRequest decodes a request: text, numbers and booleans count as text.
func decodeRequest(body io.Reader) (map[string]string, error) {
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

// formatValue reads a value and gives it as TiKV shows it: sizes in the largest unit that
// is whole.
func formatValue(kind, text string) (any, error) {
	switch kind {
	case "number":
		return strconv.ParseFloat(text, 64)
	case "bool":
		return strconv.ParseBool(text)
	case "size":
		n, err := bytesOf(text)
		if err != nil {
			return nil, err
		}
		units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
		power := 0
		for ; power < len(units)-1 && n > 0 && n%1024 == 0; power++ {
			n /= 1024
		}
		return fmt.Sprint(n) + units[power], nil
	case "duration":
		_, err := parseDuration(text)
		return text, err
	case "text":
		if !slices.Contains([]string{"debug", "info", "warn", "error", "fatal"}, strings.ToLower(text)) {
			return nil, fmt.Errorf("invalid level %q", text)
		}
	}
	return text, nil
}
