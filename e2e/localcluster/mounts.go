package localcluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsBelow returns the mount points below dir (not dir itself, nor those to
// keep), the latest first, from the content of /proc/self/mountinfo.
func mountsBelow(mountinfo, dir string, keep ...string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescapePath(fields[4]); strings.HasPrefix(point, dir+"/") && !slices.Contains(keep, point) {
			found = append(found, point)
		}
	}
	slices.Reverse(found)
	return found
}

// unescapePath undoes the octal escapes that mountinfo has for blanks.
func unescapePath(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unmountBelow unmounts everything below dir but the mount points to keep. What is
// busy is detached: it goes away with its last user.
func unmountBelow(dir string, keep ...string) error {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, point := range mountsBelow(string(content), dir, keep...) {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		// Several mounts on one point and propagation make some vanish early.
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}
