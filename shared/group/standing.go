package group

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// Standing is a Component whose members are never disrupted while they serve.
type Standing struct {
	// Serves says why a member counts as serving; empty if it does not.
	Serves func(i *v1alpha1.Instance) string
}

// Spare implements Component.
func (c Standing) Spare(i *v1alpha1.Instance) bool { return c.Serves(i) == "" }

// Rank implements Component.
func (Standing) Rank(Disruption) int { return 0 }

// Leased implements Component.
func (Standing) Leased(Disruption) bool { return false }

// Safe implements Component.
func (c Standing) Safe(d Disruption) string { return c.Serves(d.Instance) }

// Prepare implements Component.
func (Standing) Prepare(Disruption, time.Time) Preparation { return Preparation{Ready: true} }

// Recover implements Component.
func (Standing) Recover(*v1alpha1.Instance, lease.State) Preparation { return Preparation{Ready: true} }

// Sweep implements Component.
func (Standing) Sweep(*v1alpha1.Instance) []Call { return nil }

// Leaders implements Component.
func (Standing) Leaders(*v1alpha1.Instance) int { return 0 }

// Refuse implements Component.
func (Standing) Refuse([]*v1alpha1.Instance) string { return "members are not removed" }

// RemoveAtOnce implements Component.
func (Standing) RemoveAtOnce() int { return 1 }

// Replaced implements Component.
func (Standing) Replaced(*v1alpha1.Instance) bool { return false }

// Dead implements Component.
func (Standing) Dead(*v1alpha1.Instance) string { return "" }
