// Package failover decides which members are dead, by spec.failover: for how long their
// stores have been down, and what follows, an extra member or a replacement (KV-20 to KV-22).
//
// In goes a State; out come how many extra members there are to be, which member is to be
// replaced, and what the group's status says of it.
package failover
