package pd

import "slices"

// Rule says where PD places peers of the regions of a range of keys.
type Rule struct {
	// Group and ID name the rule. PD's own is pd/default, TiFlash's are in the
	// group tiflash.
	Group, ID string
	// Start and End of the range of keys, in hexadecimal; empty for no bound.
	Start, End string
	// Role of the peers: voter, leader, follower or learner.
	Role string
	// Count of the peers for each region.
	Count int
	// LocationLabels by which the peers are kept apart, most significant first.
	LocationLabels []string
	// IsolationLevel is which of the LocationLabels no two of the peers may have in
	// common; empty if none.
	IsolationLevel string
	// Constraints that a store must fulfil, all of them.
	Constraints []Constraint
}

// Constraint of a Rule on the labels of a store.
type Constraint struct {
	// Key of the label.
	Key string
	// Op is PD's word for how the label is compared: in, notIn, exists or
	// notExists.
	Op string
	// Values that it is compared with.
	Values []string
}

// Equal reports whether two rules say the same.
func (r Rule) Equal(q Rule) bool {
	return r.Group == q.Group && r.ID == q.ID && r.Start == q.Start && r.End == q.End && r.Role == q.Role && r.Count == q.Count &&
		r.IsolationLevel == q.IsolationLevel && slices.Equal(r.LocationLabels, q.LocationLabels) &&
		slices.EqualFunc(r.Constraints, q.Constraints, func(a, b Constraint) bool {
			return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
		})
}
