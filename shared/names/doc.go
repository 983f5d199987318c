// Package names gives every object of the suite its name. Names are
// deterministic, so that creating an object twice is harmless, and those that
// users of TiDB know: basic-pd-0, data-basic-tikv-1, basic-tidb-peer.
package names
