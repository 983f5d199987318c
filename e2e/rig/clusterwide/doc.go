// Package clusterwide holds the tests of rigs whose operators watch all namespaces, and the
// nodes: each sees what the others make, so that they run one after the other, on a control
// plane of their own. In are scenarios and mistakes of users, out is what the database and the
// API server hold in the end. It has nothing but tests.
package clusterwide
