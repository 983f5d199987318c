// Package schema finishes the CustomResourceDefinitions that controller-gen
// writes: it makes them small enough to be applied by every client, and says
// what controller-gen has no marker for.
package schema
