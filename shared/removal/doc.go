// Package removal decides in which order members leave, and takes one out of the cluster
// (KV-04, FL-04): first its leaders, then its regions, until PD lists its store no more.
//
// In goes a State and a disruption; out come calls to PD and what is waited for, or why the
// removal of several is refused.
package removal
