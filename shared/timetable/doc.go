// Package timetable reads when something is to happen again and again: five fields of cron
// and a time zone. It is pure.
package timetable
