package upgrade

import "k8s.io/apimachinery/pkg/util/version"

// Announced reports whether TiDB wants to be notified of an upgrade between two
// versions, image tags such as v8.5.7: from v7.1.2 and later v7.1, or from v7.4.0
// on, to a later version of the same. Others hold nothing back, or do it unasked.
// Source: docs.pingcap.com/tidb/stable/smooth-upgrade-tidb. What is no version is
// no upgrade.
func Announced(from, to string) bool {
	a, b := parse(from), parse(to)
	if a == nil || b == nil || !a.LessThan(b) {
		return false
	}
	return recent(b) && (recent(a) || patched(a)) || patched(a) && patched(b)
}

// patched reports whether a version is of the v7.1 that can be notified since v7.1.2.
func patched(v *version.Version) bool { return v.Major() == 7 && v.Minor() == 1 && v.Patch() >= 2 }

// recent reports whether a version is v7.4.0 or later.
func recent(v *version.Version) bool { return v.AtLeast(version.MajorMinor(7, 4)) }

// parse reads a tag without what stands behind its three numbers; nil if it has
// none.
func parse(tag string) *version.Version {
	v, err := version.ParseSemantic(tag)
	if err != nil {
		return nil
	}
	return v.WithPreRelease("").WithBuildMetadata("")
}
