// Package suite is the end-to-end truth: what the demo shows, as assertions, on
// a complete Kubernetes with real kubelets. Its tests have the build tag e2e and
// run by "make e2e"; PROVIDER and IMAGES choose where and on what.
package suite
