package planning

import (
	"time"

	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// LeaseChange is what is to be done with the Lease of the cluster.
type LeaseChange struct {
	// Take it for this member; nil for not.
	Take *component.Disruption
	// Leaders that the member has now, and Since when it is disrupted; zero is now.
	Leaders int
	Since   time.Time
	// Batch are the members that are disrupted at the same time; BatchBlocked is why there
	// are none although the group asks for it.
	Batch        []lease.BatchMember
	BatchBlocked string
	// Recreating is the group if the member's Instance is being deleted and created again.
	Recreating string
	// Release it.
	Release bool
	// Why, for an Event.
	Why string
}

// State is what the Lease is to say once it is taken.
func (c LeaseChange) State() lease.State {
	return lease.State{Holder: lease.NewHolder(c.Take.Instance), Since: c.Since, Leaders: c.Leaders, Recreating: c.Recreating, Batch: c.Batch, BatchBlocked: c.BatchBlocked}
}
