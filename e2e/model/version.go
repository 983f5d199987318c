package model

import (
	"strconv"
	"strings"
)

// clusterVersion is the lowest version of all stores that have not left, and
// never falls.
func clusterVersion(stores map[uint64]*Store, current string) string {
	lowest := ""
	for _, s := range stores {
		if s.State == StoreTombstone || s.Meta.Version == "" {
			continue
		}
		if lowest == "" || isOlderVersion(s.Meta.Version, lowest) {
			lowest = strings.TrimPrefix(s.Meta.Version, "v")
		}
	}
	if lowest == "" || isOlderVersion(lowest, current) {
		return current
	}
	return lowest
}

// isCompatible says whether a store may join, or come back to, a cluster: one that is
// older than it may if nothing but the patch differs.
func isCompatible(store, cluster string) bool {
	x, okX := versionNumbers(store)
	y, okY := versionNumbers(cluster)
	return !okX || !okY || !isOlderVersion(store, cluster) || x[0] == y[0] && x[1] == y[1]
}

// isOlderVersion compares the numbers of two versions and leaves suffixes aside.
// What is no version is never older.
func isOlderVersion(a, b string) bool {
	x, okX := versionNumbers(a)
	y, okY := versionNumbers(b)
	if !okX || !okY {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func versionNumbers(v string) ([3]int, bool) {
	var out [3]int
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	parts := strings.Split(v, ".")
	if len(parts) != len(out) {
		return out, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out, false
		}
		out[i] = n
	}
	return out, true
}
