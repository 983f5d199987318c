package settings

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// NewTiProxy returns the configuration of a TiProxy that starts with a decoded file. The
// error is what the process ends with.
func NewTiProxy(file map[string]any) (*Config, error) {
	c, err := newConfig(file, nil)
	if err != nil {
		return nil, err
	}
	if _, has := c.lookup("log.level"); !has {
		c.set("log.level", "info")
	}
	if err := checkTiProxy(c.document); err != nil {
		return nil, fmt.Errorf("invalid configuration: %w", err)
	}
	return c, nil
}

// TiProxy answers on /api/admin/config/ of TiProxy's HTTP API: it takes a part of the file,
// all of it or nothing, and what the part does not name stays as it is.
func (c *Config) TiProxy(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		c.show(w)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = c.merge(body)
	}
	if err != nil {
		rejectRequest(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.WriteHeader(http.StatusOK)
}

// merge takes a part of a file.
func (c *Config) merge(body []byte) error {
	var part map[string]any
	if err := toml.Unmarshal(body, &part); err != nil {
		return err
	}
	if err := checkTiProxy(part); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	overlayValues(c.document, part)
	return nil
}

// overlayValues puts the values of a part into a document.
func overlayValues(document, part map[string]any) {
	for key, value := range part {
		below, isTable := value.(map[string]any)
		into, there := document[key].(map[string]any)
		if isTable && there {
			overlayValues(into, below)
			continue
		}
		document[key] = value
	}
}

// checkTiProxy is what TiProxy checks of a file.
func checkTiProxy(file map[string]any) error {
	c := &Config{document: file}
	if level, has := c.lookup("log.level"); has {
		if text := fmt.Sprint(level); !slices.Contains([]string{"debug", "info", "warn", "error", "panic"}, text) {
			return fmt.Errorf("unrecognized level: %q", text)
		}
	}
	if err := checkLabels(file["labels"]); err != nil {
		return err
	}
	if size, has := c.lookup("proxy.conn-buffer-size"); has {
		var bytes float64
		if _, err := fmt.Sscan(fmt.Sprint(size), &bytes); err != nil || bytes != 0 && (bytes < 1<<10 || bytes > 16<<20) {
			return errors.New("conn-buffer-size must be between 1K and 16M")
		}
	}
	return nil
}

// checkLabels is what TiProxy checks of labels: they are texts.
func checkLabels(labels any) error {
	table, is := labels.(map[string]any)
	if labels != nil && !is {
		return errors.New("labels is no table")
	}
	for key, value := range table {
		if _, is := value.(string); !is {
			return fmt.Errorf("labels.%s is no string", key)
		}
	}
	return nil
}
