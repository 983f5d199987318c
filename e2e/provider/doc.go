// Package provider brings up the Kubernetes that the demo and the end-to-end
// suite run on: the one that this repository builds from source (local), kind,
// or any cluster that a kubeconfig reaches.
package provider
