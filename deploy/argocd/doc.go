// Package argocd holds the health checks by which Argo CD understands the suite's
// objects, and their test.
package argocd
