package leaseclient

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// companionsText is what the Lease's annotation says of who is restarted at the
// same time as the holder. It begins with the holder's UID: an operator that knows
// nothing of companions leaves the annotation when it gives the Lease to another
// one.
func companionsText(s lease.State) string {
	out := []string{string(s.Holder.UID)}
	for _, c := range s.Companions {
		out = append(out, fmt.Sprintf("%s=%d", c.Instance, c.Leaders))
	}
	return strings.Join(out, " ")
}

// companions reads what companionsText has written, none if it was written for
// another holder.
func companions(text string, holder lease.Holder) []lease.Companion {
	fields := strings.Fields(text)
	if len(fields) == 0 || fields[0] != string(holder.UID) {
		return nil
	}
	var out []lease.Companion
	for _, field := range fields[1:] {
		name, leaders, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(leaders)
		if err != nil {
			n = 0 // nothing is waited for then
		}
		out = append(out, lease.Companion{Instance: name, Leaders: n})
	}
	return out
}

// alone reads why the holder is restarted alone, empty if that was written for
// another holder.
func alone(text string, holder lease.Holder) string {
	uid, why, _ := strings.Cut(text, " ")
	if uid != string(holder.UID) {
		return ""
	}
	return why
}
