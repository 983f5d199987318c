// Package pdsim runs a whole PD in process: members with majority arithmetic in
// place of Raft, PD's HTTP API on connections within the process (on loopback too,
// if no other URLs are advertised), and one [model.Cluster] behind them.
//
// A test (or the rig) starts one per PDGroup, drives the stores through
// [PD.StartStore], [PD.StopStore] and [PD.Cluster], and kills, revives, adds, empties and forces members. What must never
// happen raises an alarm.
//
//	pd, err := pdsim.New(pdsim.Options{Members: []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"}})
//	defer pd.Close()
//	http.Client{Transport: pd.Transport()} // reaches the members by their advertised names
package pdsim
