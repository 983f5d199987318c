// Package deploy holds what is installed: the CRDs, one kustomize base per
// operator, components, overlays and samples. Its tests render all of it and
// show it to a real API server.
package deploy
