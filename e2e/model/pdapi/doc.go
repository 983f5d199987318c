// Package pdapi answers PD's HTTP API over a [model.Cluster] and
// [model.Members], with the status codes, bodies, headers and error texts of a
// real PD.
package pdapi
