package raftstore

import (
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/metapb"
)

func notLeader(region uint64, leader *metapb.Peer) *errorpb.Error {
	return &errorpb.Error{Message: "peer is not leader", NotLeader: &errorpb.NotLeader{RegionId: region, Leader: leader}}
}

func regionNotFound(region uint64) *errorpb.Error {
	return &errorpb.Error{Message: "region not found", RegionNotFound: &errorpb.RegionNotFound{RegionId: region}}
}

func storeNotMatch(asked, is uint64) *errorpb.Error {
	return &errorpb.Error{Message: "store not match", StoreNotMatch: &errorpb.StoreNotMatch{RequestStoreId: asked, ActualStoreId: is}}
}

func epochNotMatch(now ...*metapb.Region) *errorpb.Error {
	return &errorpb.Error{Message: "epoch not match", EpochNotMatch: &errorpb.EpochNotMatch{CurrentRegions: now}}
}

func staleCommand() *errorpb.Error {
	return &errorpb.Error{Message: "stale command", StaleCommand: &errorpb.StaleCommand{}}
}

func serverIsBusy(reason string) *errorpb.Error {
	return &errorpb.Error{Message: "server is busy", ServerIsBusy: &errorpb.ServerIsBusy{Reason: reason}}
}
