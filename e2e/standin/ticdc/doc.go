// Package ticdc is a stand-in for TiCDC's captures: they know each other by PD's etcd, elect an
// owner there, and divide the tables of a changefeed among them. It answers TiCDC's documented
// HTTP API, as far as the operators ask.
//
// A capture that is told to stop while it owns or copies what another one could have taken says
// so in etcd. From then on no capture of the cluster is ready, so that a test fails whose
// captures do not hand over.
//
// It is less than TiCDC: it copies nothing, its changefeed is always there, calls for the owner
// are not passed on to it, and certificates are not held to common names.
package ticdc
