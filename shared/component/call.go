package component

// CallVerb is an order to PD.
type CallVerb string

// Orders to PD; the target is a member's name or ID, or a store's ID.
const (
	TransferLeader      CallVerb = "TransferLeader"
	DeleteMember        CallVerb = "DeleteMember"
	EvictLeaders        CallVerb = "EvictLeaders"
	StopEvictingLeaders CallVerb = "StopEvictingLeaders"
	DeleteStore         CallVerb = "DeleteStore"
	RestoreStore        CallVerb = "RestoreStore"
)

// Call is an order to PD.
type Call struct {
	// Verb of the order.
	Verb CallVerb
	// Target of the order.
	Target string
	// Instance for which the order is given.
	Instance string
}
