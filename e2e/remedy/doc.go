// Package remedy knows the commands that messages of the suite tell a user to
// paste: it cuts them out of a message ([Commands]), finds the texts of the operators
// that hold one ([Printed]), and says how each of them is proved to be right
// ([All], from remedies.yaml).
//
// The rig tries every command that a status prints while a scenario runs, see
// package rig; a step "paste" of a scenario types it, see package scenario.
package remedy
