package leaseclient

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// batchText is what the annotation of the Lease says of the batch that is restarted
// together with the holder. It begins with the holder's UID: an operator that does not
// know the annotation leaves it when it gives the Lease to another member.
func batchText(s lease.State) string {
	out := []string{string(s.Holder.UID)}
	for _, c := range s.Batch {
		out = append(out, fmt.Sprintf("%s=%d", c.Instance, c.Leaders))
	}
	return strings.Join(out, " ")
}

// parseBatch reads what batchText has written, none if it was written for another
// holder.
func parseBatch(text string, holder lease.Holder) []lease.BatchMember {
	fields := strings.Fields(text)
	if len(fields) == 0 || fields[0] != string(holder.UID) {
		return nil
	}
	var out []lease.BatchMember
	for _, field := range fields[1:] {
		name, leaders, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(leaders)
		if err != nil {
			n = 0 // nothing is waited for then
		}
		out = append(out, lease.BatchMember{Instance: name, Leaders: n})
	}
	return out
}

// parseBatchBlocked reads why the holder is restarted alone, empty if that was written for
// another holder.
func parseBatchBlocked(text string, holder lease.Holder) string {
	uid, why, _ := strings.Cut(text, " ")
	if uid != string(holder.UID) {
		return ""
	}
	return why
}
