// Package metrics tells the state of the suite's objects as Prometheus metrics.
//
// In goes the operator's cache, read at the moment of a scrape; out come the metrics of Table.
// So nothing has to be kept in step, and the metrics of an object go with it. The number of
// series is bounded: per object by the conditions of v1alpha1.ConditionTable, per member by a
// constant. Every label but the names of objects has a closed set of values; what is outside of
// it is told as Other.
package metrics
