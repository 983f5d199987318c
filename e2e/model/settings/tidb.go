package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// field is an item that TiDB takes in a form.
type field struct {
	name, key string
	read      func(text string) (any, error)
	// hidden says that TiDB does not show what it was given.
	hidden bool
}

var errIllegal = errors.New("illegal argument")

// tidbFields are the items that TiDB v8.5 takes on /settings, in its order.
func tidbFields() []field {
	binary := func(text string) (any, error) {
		if text != "0" && text != "1" {
			return nil, errIllegal
		}
		return text == "1", nil
	}
	return []field{
		{"log_level", "log.level", func(text string) (any, error) { return parse("text", text) }, false},
		{"tidb_general_log", "instance.tidb_general_log", binary, true},
		{"ddl_slow_threshold", "instance.ddl_slow_threshold", func(text string) (any, error) { return strconv.Atoi(text) }, true},
		{"check_mb4_value_in_utf8", "instance.tidb_check_mb4_value_in_utf8", binary, false},
		{"deadlock_history_capacity", "pessimistic-txn.deadlock-history-capacity", func(text string) (any, error) {
			n, err := strconv.Atoi(text)
			switch {
			case err != nil:
				return nil, errIllegal
			case n < 0 || n > 10000:
				return nil, errors.New("deadlock_history_capacity out of range, should be in 0 to 10000")
			}
			return n, nil
		}, false},
		{"deadlock_history_collect_retryable", "pessimistic-txn.deadlock-history-collect-retryable", func(text string) (any, error) {
			yes, err := strconv.ParseBool(text)
			if err != nil {
				return nil, errIllegal
			}
			return yes, nil
		}, false},
	}
}

// NewTiDB returns the configuration of a TiDB that starts with a decoded file. The
// error is what the process ends with.
func NewTiDB(file map[string]any) (*Config, error) {
	c, err := newConfig(file, nil)
	if err != nil {
		return nil, err
	}
	initial := map[string]any{
		"log.level": "info", "instance.tidb_general_log": false, "instance.ddl_slow_threshold": 300.0, "instance.tidb_check_mb4_value_in_utf8": true,
		"pessimistic-txn.deadlock-history-capacity": 10.0, "pessimistic-txn.deadlock-history-collect-retryable": false,
	}
	for _, key := range slices.Sorted(maps.Keys(initial)) {
		if value, has := c.lookup(key); !has {
			c.set(key, initial[key])
		} else if fmt.Sprintf("%T", value) != fmt.Sprintf("%T", initial[key]) {
			return nil, fmt.Errorf("invalid configuration: %s is %v", key, value)
		}
	}
	if level, _ := c.lookup("log.level"); level != "" {
		if _, err := parse("text", fmt.Sprint(level)); err != nil {
			return nil, fmt.Errorf("invalid configuration: log.level: %w", err)
		}
	}
	return c, nil
}

// TiDB answers on TiDB's /settings. Items are taken one after the other, up to the
// first that is refused; what is no item is ignored.
func (c *Config) TiDB(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		c.show(w)
		return
	}
	if err := r.ParseForm(); err != nil {
		rejectRequest(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := c.take(r.Form); err != nil {
		rejectRequest(w, http.StatusBadRequest, err.Error())
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (c *Config) take(form url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range tidbFields() {
		text := form.Get(f.name)
		if text == "" {
			continue
		}
		value, err := f.read(text)
		switch {
		case err != nil:
			return err
		case value == 0 && f.hidden: // TiDB takes a threshold of 0 for none
		case f.hidden:
			c.hidden[f.key] = value
		default:
			c.set(f.key, value)
		}
	}
	return nil
}
