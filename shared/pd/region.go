package pd

// Region is a range of keys with the peers that hold it.
type Region struct {
	// ID in decimal.
	ID string
	// Peers on as many stores.
	Peers []Peer
	// LeaderStore is the ID of the store whose peer leads; empty if none does.
	LeaderStore string
	// Missing says that PD lists the region among those with fewer peers than its
	// rules want: another one is added as soon as a store can take it.
	Missing bool
}

// Peer of a region.
type Peer struct {
	// StoreID of the store that holds the peer.
	StoreID string
	// Voter says that the peer counts for the majority; a learner, such as one
	// of TiFlash, does not.
	Voter bool
	// Down says that the region's leader has reported not to have heard of the
	// peer for long (TiKV: raftstore.max-peer-down-duration).
	Down bool
	// Pending says that the region's leader has reported that the peer lacks
	// what it takes to go on: it waits for a snapshot or for much of the log.
	Pending bool
}
