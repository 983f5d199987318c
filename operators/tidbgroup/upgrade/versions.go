package upgrade

import "k8s.io/apimachinery/pkg/util/version"

// NeedsAnnouncement reports whether TiDB wants to be notified of an upgrade between two
// versions, image tags such as v8.5.7: from v7.1.2 and later v7.1, or from v7.4.0
// on, to a later version of the same. Others hold nothing back, or do it unasked.
// Source: docs.pingcap.com/tidb/stable/smooth-upgrade-tidb. What is no version is
// no upgrade.
func NeedsAnnouncement(from, to string) bool {
	a, b := parseVersion(from), parseVersion(to)
	if a == nil || b == nil || !a.LessThan(b) {
		return false
	}
	return isRecent(b) && (isRecent(a) || isPatched(a)) || isPatched(a) && isPatched(b)
}

// isPatched reports whether a version is of the v7.1 that can be notified since v7.1.2.
func isPatched(v *version.Version) bool { return v.Major() == 7 && v.Minor() == 1 && v.Patch() >= 2 }

// isRecent reports whether a version is v7.4.0 or later.
func isRecent(v *version.Version) bool { return v.AtLeast(version.MajorMinor(7, 4)) }

// parseVersion reads a tag without what stands behind its three numbers; nil if it has
// none.
func parseVersion(tag string) *version.Version {
	v, err := version.ParseSemantic(tag)
	if err != nil {
		return nil
	}
	return v.WithPreRelease("").WithBuildMetadata("")
}
