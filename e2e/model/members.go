package model

import "context"

// Member is one PD member.
type Member struct {
	Name           string
	ID             uint64
	PeerURLs       []string
	ClientURLs     []string
	LeaderPriority int
}

// Members is the half of PD that Raft decides: who the members are and who
// leads. Each PD member has its own view of it.
//
// It is implemented over a real embedded etcd by the PD stand-in, and by
// majority arithmetic in package pdsim.
type Members interface {
	// ClusterID is the id that was born with the cluster; 0 before it is known.
	ClusterID() uint64
	// Self is the member that answers.
	Self() Member
	// IsLeader says whether this member is the PD leader now.
	IsLeader() bool
	// IsLoaded says whether this member has all regions in memory.
	IsLoaded() bool
	// Leader is the PD leader as this member last knew it; a member without
	// quorum goes on believing in the last one.
	Leader() (Member, bool)
	// RaftLeader is the leader of the consensus group below PD.
	RaftLeader() (Member, bool)
	// List returns the members by ascending id. A member that was added and has
	// not started yet has an empty name.
	List(ctx context.Context) ([]Member, error)
	// Healthy says which members answer, by id.
	Healthy(ctx context.Context, members []Member) map[uint64]bool
	// Transfer asks for another leader; an empty name means any other member.
	// That it returns does not mean that it has happened.
	Transfer(ctx context.Context, name string) error
	// Remove takes a member out of the cluster. Removing the leader is accepted.
	Remove(ctx context.Context, id uint64) error
	// SetPriority sets the leader priority of a member.
	SetPriority(ctx context.Context, id uint64, priority int) error
}
