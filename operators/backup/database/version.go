package database

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

// IsOlder reports whether a server's version is below that of another, as far as both tell it.
func IsOlder(server, than string) bool {
	a, b := versionOf(server), versionOf(than)
	return a != nil && b != nil && slices.Compare(a, b) < 0
}

// versionOf reads major and minor of what VERSION() of a TiDB says, such as
// 8.0.11-TiDB-v8.5.7; nil if it says something else.
func versionOf(said string) []int {
	found := regexp.MustCompile(`TiDB-v(\d+)[.](\d+)[.]`).FindStringSubmatch(said)
	if found == nil {
		return nil
	}
	major, err := strconv.Atoi(found[1])
	minor, err2 := strconv.Atoi(found[2])
	if cmp.Or(err, err2) != nil {
		return nil
	}
	return []int{major, minor}
}
