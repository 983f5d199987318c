// Package member answers questions about one Instance and the member of the database
// behind it: whether it is ready, whether its pod may be stopped or still has to be,
// whether a claim of it is lost, what a user asked for by annotations.
//
// In goes an Instance, sometimes with its group; out comes a fact. Nothing is decided
// here, and nothing is read but the object that is given. Everything is pure.
package member
