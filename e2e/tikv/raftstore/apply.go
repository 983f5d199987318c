package raftstore

import (
	"fmt"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// apply puts what was committed into the store's batch, and returns the answers
// that may be given when the batch is committed.
func (p *peer) apply() (answers []func(), err error) {
	before := p.applied
	for _, entry := range p.ready.CommittedEntries {
		answer, err := p.applyEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("apply entry %d of region %d: %w", entry.Index, p.regionID, err)
		}
		if answer != nil {
			answers = append(answers, answer)
		}
		if p.gone {
			return answers, nil
		}
		p.applied, p.appliedTerm = entry.Index, entry.Term
	}
	p.confirmReads()
	if p.applied != before {
		if err := p.saveApplied(); err != nil {
			return nil, err
		}
		if err := p.compact(); err != nil {
			return nil, err
		}
	}
	answers = append(answers, func() {
		for _, r := range p.appliedReads() {
			p.admitted(r)
		}
	})
	return answers, nil
}

func (p *peer) applyEntry(entry raftpb.Entry) (func(), error) {
	var command raft_cmdpb.RaftCmdRequest
	var change raftpb.ConfChangeV2
	switch entry.Type {
	case raftpb.EntryNormal:
		if len(entry.Data) == 0 {
			return nil, nil // a new leader's first
		}
		if err := command.Unmarshal(entry.Data); err != nil {
			return nil, err
		}
	case raftpb.EntryConfChange:
		// Raft proposes none itself but an empty one, to leave a joint configuration, which is a V2.
		return nil, fmt.Errorf("an old kind of configuration change")
	case raftpb.EntryConfChangeV2:
		if err := change.Unmarshal(entry.Data); err != nil {
			return nil, err
		}
		if err := command.Unmarshal(change.Context); err != nil {
			return nil, err
		}
	}
	answer := p.answerOf(command.Header)
	out, refused, err := p.execute(&command, change)
	if err != nil || answer == nil {
		return nil, err
	}
	return func() { answer(out, refused) }, nil
}

// execute does a command. Whether it is refused depends on nothing but what was
// applied before, so all replicas agree.
func (p *peer) execute(command *raft_cmdpb.RaftCmdRequest, change raftpb.ConfChangeV2) (result, *errorpb.Error, error) {
	asked, now := command.Header.GetRegionEpoch(), p.region.RegionEpoch
	if admin := command.AdminRequest; admin != nil {
		switch {
		case admin.CmdType == raft_cmdpb.AdminCmdType_ChangePeerV2 && asked.GetConfVer() == now.ConfVer:
			return result{}, nil, p.changePeers(admin.ChangePeerV2, change)
		case admin.CmdType == raft_cmdpb.AdminCmdType_BatchSplit && asked.GetConfVer() == now.ConfVer && asked.GetVersion() == now.Version:
			regions, err := p.split(admin.Splits)
			return result{regions: regions}, nil, err
		}
		return result{}, epochNotMatch(p.region), nil
	}
	if asked.GetVersion() != now.Version {
		return result{}, epochNotMatch(p.region), nil
	}
	b := p.store.batch
	before := b.Bytes
	for _, r := range command.Requests {
		var err error
		switch r.CmdType {
		case raft_cmdpb.CmdType_Put:
			err = b.Put(r.Put.Cf, r.Put.Key, r.Put.Value)
		case raft_cmdpb.CmdType_Delete:
			if r.Delete.Cf != engine.LockCF {
				return result{}, nil, fmt.Errorf("a deletion in %q", r.Delete.Cf)
			}
			err = b.DeleteLock(r.Delete.Key)
		case raft_cmdpb.CmdType_DeleteRange:
			// Only what is committed is deleted, so that must be all.
			if err = p.saveApplied(); err == nil {
				err = b.Commit()
			}
			if err == nil {
				err = b.DeleteRange(r.DeleteRange.StartKey, r.DeleteRange.EndKey)
			}
			before = b.Bytes
		default:
			err = fmt.Errorf("a command of type %s", r.CmdType)
		}
		if err != nil {
			return result{}, nil, err
		}
	}
	p.size += b.Bytes - before
	return result{}, nil, nil
}
