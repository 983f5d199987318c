// Package leaders has PD move the leaders of a store away before it stops (KV-10, KV-11), and
// back when it runs again (KV-12), or keeps them away for as long as a user asks (OPS-01).
//
// In goes a State and a member; out come calls to PD and what is waited for, with a deadline.
// An annotation on the Instance reports what an operator has begun: only that is taken back.
package leaders
