package model

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// configDefaults is PD's configuration as a fresh PD shows it.
//
//go:embed config_defaults.json
var configDefaults []byte

func defaultConfig() (map[string]json.RawMessage, error) {
	cfg := map[string]json.RawMessage{}
	if err := json.Unmarshal(configDefaults, &cfg); err != nil {
		return nil, fmt.Errorf("decode default configuration: %w", err)
	}
	return cfg, nil
}

// ConfigKeys returns the known keys of PD's configuration as a tree of
// defaults: sections are maps, leaves are values.
func ConfigKeys() (map[string]any, error) {
	cfg := map[string]any{}
	if err := json.Unmarshal(configDefaults, &cfg); err != nil {
		return nil, fmt.Errorf("decode default configuration: %w", err)
	}
	return cfg, nil
}

// online are the sections that can be changed while PD runs.
var online = []string{"schedule", "replication", "pd-server", "log", "replication-mode", "controller", "keyspace", "micro-service"}

// Config returns the whole configuration, without what is a member's own.
func (c *Cluster) Config() map[string]json.RawMessage {
	c.lock()
	defer c.mu.Unlock()
	cfg := maps.Clone(c.st.Config)
	cfg["cluster-version"] = mustJSON(c.st.ClusterVersion)
	cfg["schedule"] = mustJSON(c.scheduleSection())
	return cfg
}

// ConfigSection returns one section, for example "schedule" or "replication".
func (c *Cluster) ConfigSection(name string) map[string]any {
	c.lock()
	defer c.mu.Unlock()
	if name == "schedule" {
		return c.scheduleSection()
	}
	return c.section(name)
}

// HasPlacementRules says whether placement rules are on.
func (c *Cluster) HasPlacementRules() bool {
	return c.ConfigSection("replication")["enable-placement-rules"] == "true"
}

func (c *Cluster) scheduleSection() map[string]any {
	s := c.section("schedule")
	limits := map[string]StoreLimit{}
	for id, l := range c.storeLimits() {
		limits[fmt.Sprint(id)] = l
	}
	s["store-limit"] = limits
	if size, ok := s["max-merge-region-size"].(float64); ok && s["max-merge-region-keys"] == 0.0 {
		s["max-merge-region-keys"] = size * 10_000 // what PD makes of it
	}
	return s
}

// SetConfig changes single items, each named "section.key".
func (c *Cluster) SetConfig(items map[string]any) error {
	c.lock()
	defer c.mu.Unlock()
	before := maps.Clone(c.st.Config)
	for _, item := range slices.Sorted(maps.Keys(items)) {
		section, key, ok := strings.Cut(item, ".")
		if !ok {
			section, key = findSection(c.st.Config, item), item
		}
		if section == "cluster-version" || item == "cluster-version" {
			c.st.ClusterVersion = fmt.Sprint(items[item])
			continue
		}
		if !slices.Contains(online, section) {
			c.st.Config = before
			return badInput("config prefix %s not found", section)
		}
		if err := c.changeItem(section, key, items[item]); err != nil {
			c.st.Config = before
			return err
		}
	}
	c.syncDefaultRule()
	return c.save()
}

// changeItem sets one value as the API takes it, which is stricter than a file: truths
// and lists are text there, and numbers are not. How regions are replicated is kept in
// placement rules, which there are only once a store has registered.
func (c *Cluster) changeItem(section, key string, value any) error {
	before := string(c.st.Config[section])
	old, _ := findItem(section, key, c.section(section))
	switch value.(type) {
	case bool:
		if _, text := old.(string); text {
			return badInput("json: invalid use of ,string struct tag, trying to unmarshal unquoted value into bool")
		}
	case []any:
		if _, text := old.(string); text {
			return badInput("invalid syntax")
		}
	case string:
		if _, number := old.(float64); number {
			return badInput("json: cannot unmarshal string into Go struct field %s of type uint64", key)
		}
	}
	if err := c.setItem(section, key, value); err != nil {
		return err
	}
	if err := c.checkConfig(); err != nil {
		return err
	}
	if section == "replication" && !c.isBootstrapped() && string(c.st.Config[section]) != before {
		return badInput("%s", ErrNotBootstrapped.Error())
	}
	return nil
}

// checkConfig checks items against each other.
func (c *Cluster) checkConfig() error {
	if level := c.isolationLevel(); level != "" && !slices.Contains(c.locationLabels(), level) {
		return badInput("isolation-level must be one of location-labels or empty")
	}
	low, _ := c.parsed("schedule")["low-space-ratio"].(float64)
	high, _ := c.parsed("schedule")["high-space-ratio"].(float64)
	if low <= high {
		return badInput("low-space-ratio should be larger than high-space-ratio")
	}
	return nil
}

func findSection(cfg map[string]json.RawMessage, key string) string {
	for _, section := range online {
		m := map[string]json.RawMessage{}
		if err := json.Unmarshal(cfg[section], &m); err == nil {
			if _, ok := m[key]; ok {
				return section
			}
		}
	}
	return key
}

// SetConfigSection changes items of one section.
func (c *Cluster) SetConfigSection(section string, items map[string]any) error {
	full := make(map[string]any, len(items))
	for k, v := range items {
		full[section+"."+k] = v
	}
	return c.SetConfig(full)
}

// ClusterVersion is the lowest version of the stores.
func (c *Cluster) ClusterVersion() string {
	c.lock()
	defer c.mu.Unlock()
	return c.st.ClusterVersion
}

// overlayConfig lays sections of pd.toml over the defaults. Keys that are not
// online (addresses, data-dir, …) are a member's own and left aside.
func (c *Cluster) overlayConfig(cfg map[string]any) error {
	for _, section := range slices.Sorted(maps.Keys(cfg)) {
		items, ok := cfg[section].(map[string]any)
		if !ok || !slices.Contains(online, section) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if _, nested := items[key].(map[string]any); nested {
				continue
			}
			if err := c.setItem(section, key, items[key]); err != nil {
				return fmt.Errorf("set %s.%s: %w", section, key, err)
			}
		}
	}
	return nil
}

// setItem sets one value, with the type of the value that it replaces.
func (c *Cluster) setItem(section, key string, value any) error {
	s := c.section(section)
	if table, below, nested := strings.Cut(key, "."); nested {
		return c.setNested(section, s, table, below, value)
	}
	old, ok := findItem(section, key, s)
	if !ok {
		return badInput("config item %s not found", key)
	}
	v, err := normalizeValue(key, old, value)
	if err != nil {
		return err
	}
	s[key] = v
	if zero, hides := leftOut()[section][key]; hides && v == zero {
		delete(s, key)
	}
	c.st.Config[section] = mustJSON(s)
	return nil
}

// leftOut are items that PD knows, and leaves out of what it shows and stores while
// they are zero.
func leftOut() map[string]map[string]any {
	return map[string]map[string]any{
		"schedule": {
			"halt-scheduling": "false", "disable-raft-learner": "false", "disable-remove-down-replica": "false",
			"disable-replace-offline-replica": "false", "disable-make-up-replica": "false",
			"disable-remove-extra-replica": "false", "disable-location-replacement": "false", "store-balance-rate": 0.0,
		},
	}
}

// findItem returns what an item has in a section, and whether there is such an item.
func findItem(section, key string, items map[string]any) (any, bool) {
	if old, ok := items[key]; ok {
		return old, true
	}
	zero, ok := leftOut()[section][key]
	return zero, ok
}

// setNested sets one value of a table of a section.
func (c *Cluster) setNested(section string, s map[string]any, table, key string, value any) error {
	was, _ := s[table].(map[string]any)
	old, ok := was[key]
	if !ok {
		return badInput("config item [%s %s] not found", table, key)
	}
	v, err := normalizeValue(key, old, value)
	if err != nil {
		return err
	}
	items := maps.Clone(was)
	items[key] = v
	s[table] = items
	c.st.Config[section] = mustJSON(s)
	return nil
}

// normalizeValue gives a value the form in which PD shows it: durations and booleans
// are strings there, lists of labels are joined by commas.
func normalizeValue(key string, old, value any) (any, error) {
	switch was := old.(type) {
	case string:
		if list, ok := value.([]any); ok {
			parts := make([]string, len(list))
			for i, p := range list {
				parts[i] = fmt.Sprint(p)
			}
			value = strings.Join(parts, ",")
		}
		text := fmt.Sprint(value)
		if was == "true" || was == "false" {
			if text != "true" && text != "false" {
				return nil, badInput("%s: invalid boolean %q", key, text)
			}
			return text, nil
		}
		if _, err := time.ParseDuration(was); err == nil {
			d, err := time.ParseDuration(text)
			if err != nil {
				return nil, badInput("%s", err.Error())
			}
			return d.String(), nil
		}
		return text, nil
	case float64:
		n, err := parseNumber(value)
		if err != nil {
			return nil, badInput("%s: %s", key, err.Error())
		}
		return n, nil
	case bool:
		b, ok := value.(bool)
		if !ok {
			return nil, badInput("%s: invalid boolean %v", key, value)
		}
		return b, nil
	default:
		return value, nil
	}
}

func parseNumber(value any) (float64, error) {
	switch v := value.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case int:
		return float64(v), nil
	default:
		var f float64
		if _, err := fmt.Sscan(fmt.Sprint(value), &f); err != nil {
			return 0, fmt.Errorf("invalid number %v", value)
		}
		return f, nil
	}
}

// section returns a copy of one section.
func (c *Cluster) section(name string) map[string]any {
	return maps.Clone(c.parsed(name))
}

// parsed returns one section, decoded once per change. It must not be written to.
func (c *Cluster) parsed(name string) map[string]any {
	raw := c.st.Config[name]
	if e, ok := c.sections[name]; ok && string(e.raw) == string(raw) {
		return e.items
	}
	items := map[string]any{}
	// Every section was read from or written as JSON by this package.
	if err := json.Unmarshal(raw, &items); err != nil {
		items = map[string]any{}
	}
	c.sections[name] = section{raw: raw, items: items}
	return items
}

type section struct {
	raw   json.RawMessage
	items map[string]any
}

func (c *Cluster) duration(name, key string) time.Duration {
	text, _ := c.parsed(name)[key].(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

func (c *Cluster) maxReplicas() int {
	n, _ := c.parsed("replication")["max-replicas"].(float64)
	return int(n)
}

func (c *Cluster) locationLabels() []string {
	text, _ := c.parsed("replication")["location-labels"].(string)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// isolationLevel is which of the location labels no two voters of a region may
// have in common; empty if none.
func (c *Cluster) isolationLevel() string {
	text, _ := c.parsed("replication")["isolation-level"].(string)
	return text
}

// MaxReplicas is the number of voters that each region shall have.
func (c *Cluster) MaxReplicas() int {
	c.lock()
	defer c.mu.Unlock()
	return c.maxReplicas()
}

// mustJSON encodes values made of maps, strings and numbers only.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
