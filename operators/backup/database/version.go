package database

import (
	"cmp"
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strconv"
)

// IsOlder reports whether a server's version is below that of another, as far as both tell it.
func IsOlder(server, than string) bool {
	a, b := versionOf(server), versionOf(than)
	return a != nil && b != nil && slices.Compare(a, b) < 0
}

// askVersion asks a server for its release, such as TiDB-v8.5.7. What VERSION() says is an item of
// its configuration, server-version.
func askVersion(ctx context.Context, db *sql.DB) (string, error) {
	said := ""
	if err := db.QueryRowContext(ctx, "SELECT TIDB_VERSION()").Scan(&said); err != nil {
		return "", err
	}
	if found := regexp.MustCompile(`(?m)^Release Version: (v\S+)`).FindStringSubmatch(said); found != nil {
		return "TiDB-" + found[1], nil
	}
	return said, nil
}

// versionOf reads major and minor of a release, such as TiDB-v8.5.7, or as older markers have it,
// 8.0.11-TiDB-v8.5.7; nil of something else.
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
