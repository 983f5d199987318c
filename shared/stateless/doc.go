// Package stateless decides when members that keep no data may be stopped, restarted and
// removed, and what is reported of them: TiDB servers, TiProxies and TiCDC captures.
//
// In: the group, its Instances, how many there may be beyond spec.replicas, and whether a
// member that starts now can serve. Out: the answers of component.Component, and the
// members as an Instance's status shows them.
package stateless
