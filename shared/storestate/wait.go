package storestate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// PDCtl is the command that begins an order to the PD of a group. With TLS it shows the
// certificate of PD's pod, and names PD as its certificate does.
func PDCtl(g v1alpha1.Group) string {
	plain := fmt.Sprintf("kubectl -n %s exec svc/%s -- /pd-ctl", g.GetNamespace(), g.PDGroupName())
	if g.GetTLS() == nil {
		return plain
	}
	files := workload.FilesIn(workload.TLSDirOf(v1alpha1.ComponentPD))
	host := names.ServiceHost(g.PDGroupName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain)
	return fmt.Sprintf("%s -u %s://%s:%d --cacert %s --cert %s --key %s", plain, v1alpha1.SpecScheme(g), host, v1alpha1.PortPDClient, files.CA, files.Cert, files.Key)
}

// SetCommand tells to give PD a setting of its replication: in the spec of its group where that has it, for
// there it is set back.
func SetCommand(c State, key, value string) string {
	if g := c.Snapshot.PDGroup; g != nil && strings.Contains(g.Spec.Config, key) {
		return "set in " + origin.OfGroup(g).DescribeField("config") + " replication." + key + " to " + value
	}
	return PDCtl(c.Group) + " config set " + key + " " + value
}

// LookSoon is how soon PD is looked at again for something that no watch reports.
const LookSoon = 500 * time.Millisecond

// WaitForPD returns a Preparation that waits for PD.
func WaitForPD(reason, format string, args ...any) component.Preparation {
	return component.Preparation{Wait: step.Wait("PD", LookSoon, reason, fmt.Sprintf(format, args...))}
}

// FormatCount writes a number of things.
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ListIDs names stores by their IDs.
func ListIDs(stores []pd.Store) string {
	if len(stores) == 0 {
		return "none"
	}
	out := make([]string, len(stores))
	for n, s := range stores {
		out[n] = "store " + s.ID
	}
	return strings.Join(out, ", ")
}

// LookLater is how soon an operator looks again by itself at what a change of PD's View
// should have reported it.
const LookLater = 10 * time.Second

// RoundCount rounds a number of regions: to tens below 100, to two digits above. Each
// change of it is a write, and the exact number helps no one.
func RoundCount(n int) string {
	if n < 10 {
		return fmt.Sprint(n)
	}
	unit := math.Pow10(max(1, int(math.Log10(float64(n)))-1))
	return fmt.Sprintf("about %d", int(math.Round(float64(n)/unit)*unit))
}

// RegionCount writes a number of regions as RoundCount does.
func RegionCount(n int) string {
	if n == 1 {
		return "1 region"
	}
	return RoundCount(n) + " regions"
}
