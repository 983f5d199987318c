// Package metrics tells the state of the suite's objects as Prometheus metrics. All of
// it is read from the operator's cache at the moment of a scrape: there is nothing to
// keep in step, and the series of an object go with it.
//
// The number of series is bounded: per object by the conditions of
// v1alpha1.ConditionTable, per member by a constant. Every label but the names of
// objects has a closed set of values; what is outside of it is reported as Other.
package metrics
