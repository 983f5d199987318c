// Package placement decides where stores lie and where PD may place peers: the labels of
// stores, the places that a group spreads over, and whether every region and every placement
// rule still finds enough stores without some members.
//
// In goes a State; out come label changes, an imbalance, or why members are needed. The rules
// are those of PD: fits says which.
package placement
