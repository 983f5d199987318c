package model

import (
	"fmt"
	"time"
)

// AlarmKind says which of the things that must never happen has happened.
type AlarmKind string

// The alarms. Any of them fails the run that it is raised in.
const (
	// LostRegionMajority means that fewer than a majority of a region's voters are alive.
	LostRegionMajority AlarmKind = "LostRegionMajority"
	// LostPDMajority means that fewer than a majority of the PD members are alive.
	LostPDMajority AlarmKind = "LostPDMajority"
	// SecondClusterID means that a second PD cluster was born where there was one already.
	SecondClusterID AlarmKind = "SecondClusterID"
	// TwoClusters means that members of one cluster ID run side by side of which some
	// do not know the others: each side may answer.
	TwoClusters AlarmKind = "TwoClusters"
	// LostData means that the data of a majority of a region's voters is gone for good.
	LostData AlarmKind = "LostData"
	// NotLoaded means that a PD member without the regions was told to lead, while another
	// one had them.
	NotLoaded AlarmKind = "NotLoaded"
	// NotHandedOver means that a TiCDC capture ended with tables, or as the owner, that
	// others could have taken.
	NotHandedOver AlarmKind = "NotHandedOver"
)

// Alarm is one thing that must never happen, at the moment it happened.
type Alarm struct {
	At      time.Time `json:"at"`
	Kind    AlarmKind `json:"kind"`
	Subject string    `json:"subject"`
	Message string    `json:"message"`
}

// String renders the alarm on one line.
func (a Alarm) String() string {
	return fmt.Sprintf("%s %s %s: %s", a.At.UTC().Format(time.RFC3339Nano), a.Kind, a.Subject, a.Message)
}
