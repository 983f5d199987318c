// Package tikv is a stand-in for tikv-server: it takes the same flags and
// configuration file, registers its store in PD over PD's gRPC protocol, sends
// the store's and its regions' heartbeats and obeys PD's orders about them,
// and answers on the status port. It stores no user data.
//
// What makes a store a store is on its data directory (store.json): the
// cluster ID and the store ID. An emptied directory is an emptied store, which
// registers under a new ID, and a directory of another cluster is refused.
//
// It also works against a real PD. Left out: Raft between the stores (a region
// whose leader is gone has none until that store is back), splits, merges,
// and any service on the store's port but the handing over of regions and the word
// that there is no log backup to flush.
package tikv
